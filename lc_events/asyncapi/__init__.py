"""The topics as a document that other programs can read: AsyncAPI 3, JSON Schemas, one real example a message."""
