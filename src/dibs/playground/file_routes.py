"""The addresses of files: where bytes are uploaded, where a bot reads them, and where the page does."""

from __future__ import annotations

from email.message import Message
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from dibs.playground import files
from dibs.playground.world import Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from dibs.playground.app import App
    from dibs.playground.files import File
    from dibs.playground.routes import BotRoutes
    from dibs.playground.workspace import Workspace
    from dibs.playground.world import World

Json = dict[str, Any]

FAULT_NAME: Final = "upload_url"
"""What faults and the log of calls name an upload by."""
CONFINED: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}


class FileRoutes:
    """Takes uploads and hands files out to whoever may read them."""

    def __init__(self, app: App, workspaces: Mapping[str, Workspace], bot_routes: BotRoutes) -> None:
        self._app = app
        self._workspaces = workspaces
        self._bot_routes = bot_routes

    def routes(self) -> list[Route]:
        """Return the addresses for Starlette."""
        return [
            Route("/upload/v1/{team}/{ticket}", self._upload, methods=["POST"]),
            Route("/files-pri/{team_and_file}/{name}", self._private, methods=["GET"]),
            Route("/files-pri/{team_and_file}/download/{name}", self._private, methods=["GET"]),
            Route("/page/files/{file}", self._on_page, methods=["GET"]),
        ]

    async def _upload(self, request: Request) -> Response:
        """Take the bytes of one file: as they are, or as the part of a form that has a file name."""
        workspace = self._workspaces.get(request.path_params["team"])
        if workspace is None:
            return PlainTextResponse("there is no such workspace", HTTPStatus.NOT_FOUND)
        world = workspace.world
        content = _content(await request.body(), request.headers.get("content-type", ""))
        told = {"length": len(content)}

        def work() -> Response:
            with world.lock:
                try:
                    file = files.take(world, request.path_params["ticket"], content)
                except (LookupError, ValueError) as error:
                    world.calls.append(
                        Call(FAULT_NAME, told, {"ok": False, "error": str(error)}, world.clock.now())
                    )
                    return PlainTextResponse(str(error), HTTPStatus.BAD_REQUEST)
                world.calls.append(Call(FAULT_NAME, told, {"ok": True, "file": file.id}, world.clock.now()))
                return PlainTextResponse(f"OK - {file.length}")

        return await self._bot_routes.faulty(world, FAULT_NAME, told, request, work)

    async def _private(self, request: Request) -> Response:
        """Hand a file out to a bot that may read it; everybody else is led to a page, as Slack does."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        grant = self._app.grants.get(token.strip()) if scheme.lower() == "bearer" else None
        team, _, file_id = request.path_params["team_and_file"].partition("-")
        if grant is None or grant.revoked or grant.world.team_id != team or not _may_read(grant.scopes):
            return RedirectResponse(f"/?redir={quote(request.url.path)}", HTTPStatus.FOUND)
        return _handed_out(grant.world, file_id)

    async def _on_page(self, request: Request) -> Response:
        """Hand a file out to a person on the page who sees it."""
        world = next(iter(self._workspaces.values())).world
        file, user = world.files.get(request.path_params["file"]), request.query_params.get("user", "")
        with world.lock:
            if file is None or not files.sees(world, user, file):
                return PlainTextResponse("There is no such file here.", HTTPStatus.NOT_FOUND)
        return _handed_out(world, file.id)


def _may_read(scopes: frozenset[str] | None) -> bool:
    return scopes is None or "files:read" in scopes


def _handed_out(world: World, file_id: str) -> Response:
    file = world.files.get(file_id)
    if file is None or file.content is None or not file.complete:
        return PlainTextResponse("There is no such file.", HTTPStatus.NOT_FOUND)
    return Response(file.content, media_type=file.mimetype, headers=CONFINED | _disposition(file))


def _disposition(file: File) -> dict[str, str]:
    """A picture is shown; anything else is only saved, so that no page in a file is ever run here."""
    how = "inline" if file.mimetype in files.PICTURES else "attachment"
    return {"Content-Disposition": f"{how}; filename*=UTF-8''{quote(file.name)}"}


def _content(body: bytes, content_type: str) -> bytes:
    """Return the bytes of a file from a body that is nothing else, or from a form."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/form-data" or boundary is None:
        return body
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary.encode()):
        head, _, content = part.partition(b"\r\n\r\n")
        if b"filename=" in head.lower():
            return content
    return b""
