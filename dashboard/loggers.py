"""What Streamlit and uvicorn log goes where our own entries go, from their first word on: import this before
what asks Streamlit for anything.

Streamlit gives each of its loggers a handler, some not before a page needs them, and uvicorn does so when it
starts.
"""

from __future__ import annotations

import logging

import streamlit.logger
import uvicorn.config

from store import logs

streamlit.logger.setup_formatter = logs.adopt
streamlit.logger.update_formatter()
# That the caches of our pages are made before it runs, it need not tell at every start.
logging.getLogger("streamlit.runtime.caching.cache_data_api").setLevel(logging.ERROR)
uvicorn.config.LOGGING_CONFIG["loggers"] = {}
if not logging.root.handlers:  # else somebody listens already
    logs.begin()
