"""What crosses a process boundary: strict JSON and pydantic models, nothing that acts."""
