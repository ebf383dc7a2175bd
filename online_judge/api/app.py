"""The application: routes, errors and access. Imports no torch; its lifespan starts the processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI

from online_judge.api import errors, jobs, openapi, v1
from online_judge.api.auth import AccessControl
from online_judge.api.judge import running_judge
from online_judge.settings import Settings


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.settings = Settings.from_environment()
    async with running_judge(app.state.settings) as app.state.judge:
        yield


def create_app() -> FastAPI:
    """Return the application; nothing runs before its lifespan starts."""
    application = FastAPI(title=openapi.SERVICE, lifespan=lifespan, docs_url=None, redoc_url=None)
    application.include_router(v1.router)
    application.include_router(jobs.router)
    errors.add_handlers(application)
    application.openapi = partial(openapi.document, application)  # type: ignore[method-assign]
    application.add_middleware(AccessControl)
    return application


app = create_app()
