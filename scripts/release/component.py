"""The component of a software bill of materials."""

import dataclasses


@dataclasses.dataclass
class Component:
    """A part of an artifact, and the identifiers of the parts that it depends on."""

    id: str
    name: str
    version: str
    license: str | None = None
    purl: str | None = None
    sha256: str | None = None
    repository: str | None = None
    comment: str | None = None
    kind: str = "library"
    dependencies: set[str] = dataclasses.field(default_factory=set)
