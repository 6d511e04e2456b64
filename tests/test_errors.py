"""What an error stands for."""

import pytest

from harness.errors import not_interrupted


def clean_up_fails_after(error: BaseException) -> Exception:
    try:
        try:
            raise error
        finally:
            raise OSError("the connection is cut")
    except OSError as failed:
        return failed


def test_an_error_of_the_clean_up_after_an_interrupt_is_the_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        not_interrupted(clean_up_fails_after(KeyboardInterrupt()))


def test_an_error_of_the_clean_up_after_another_error_is_none() -> None:
    not_interrupted(clean_up_fails_after(ValueError("a broken check")))
