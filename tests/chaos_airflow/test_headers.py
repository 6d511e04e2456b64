"""What a browser has already is not sent again; an answer in several parts goes out as it comes."""

from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from chaos_airflow.views.headers import Revalidated


async def whole(_request: Request) -> Response:
    return Response("all of it")


async def in_parts(_request: Request) -> Response:
    def parts() -> Iterator[str]:
        yield "all "
        yield "of it"

    return StreamingResponse(parts())


@pytest.mark.parametrize(("path", "again"), [("/whole", 304), ("/parts", 200)])
async def test_an_answer_is_whole_whether_it_has_a_tag_or_comes_in_parts(path: str, again: int) -> None:
    app = Revalidated(Starlette(routes=[Route("/whole", whole), Route("/parts", in_parts)]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://chaos") as client:
        first = await client.get(path)
        assert (first.status_code, first.text) == (200, "all of it")
        second = await client.get(path, headers={"If-None-Match": first.headers.get("ETag", "none")})
    assert (second.status_code, second.text) == (again, "" if again == 304 else "all of it")
