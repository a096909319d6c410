"""Checks software bills of materials against their schemas: validate_sbom.py FILE... (names end in .cdx.json or .spdx.json).
Needs the packages of `install-tools.sh sbom-validators`.
"""

import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.error import SPDXParsingError
from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document


def main() -> None:
    errors = []
    for path in map(pathlib.Path, sys.argv[1:]):
        check = spdx_errors if path.name.endswith(".spdx.json") else cyclonedx_errors
        errors += [f"{path}: {error}" for error in check(json.loads(path.read_text()))]
    if errors or len(sys.argv) == 1:
        sys.exit("\n".join(errors) or "validate_sbom.py: no files: give it FILE.cdx.json or FILE.spdx.json")
    print(f"{len(sys.argv) - 1} bills of materials are valid")


def cyclonedx_errors(document: dict) -> list[str]:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document))
    return [str(error)] if error else []


def spdx_errors(document: dict) -> list[str]:
    try:
        parsed = JsonLikeDictParser().parse(document)
    except SPDXParsingError as error:
        return error.get_messages()
    return [message.validation_message for message in validate_full_spdx_document(parsed)]


if __name__ == "__main__":
    main()
