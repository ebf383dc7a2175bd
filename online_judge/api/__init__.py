"""HTTP only: routes, access control, forms of requests and answers."""
