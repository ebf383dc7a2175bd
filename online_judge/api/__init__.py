"""HTTP only: routes, who may ask, what requests and answers look like."""
