"""The handlers of all APIs: decoded request in, decoded response out."""
