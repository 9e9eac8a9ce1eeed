"""The server of the pages, with limits for clients that send or read slowly: uvicorn has none."""
