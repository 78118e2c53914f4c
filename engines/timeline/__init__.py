"""The events of a job with their times: recorded, and shown as text or as SVG."""
