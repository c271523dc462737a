"""The last words of a process that ends by an error."""

from collectors.backend import BackendError
from collectors.ending import for_log


def test_a_backend_that_ends_a_process_is_told_with_a_next_step() -> None:
    """A log is not told the words of a backend, so it says which command tells them."""
    assert "memtrend doctor" in for_log(BackendError("quotes a memory"))["event"]
    assert "quotes" not in str(for_log(BackendError("quotes a memory")))
