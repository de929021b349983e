"""The messages of Flight SQL: pyarrow implements the calls, but not their contents.

They are declared here in a short form of the standard (`FlightSql.proto`, `Flight.proto`): the classes are built on
first use. Unused fields are omitted; parsers skip them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from google.protobuf.any_pb2 import Any as Wrapped
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from odfpy.serving.flight.errors import WrongMessage

_SQL: Final = "arrow.flight.protocol.sql"
_FLIGHT: Final = "arrow.flight.protocol"
_URL: Final = "type.googleapis.com/"

_MESSAGES: Final = {
    _SQL: """
    CommandGetSqlInfo: repeated uint32 info = 1
    CommandGetXdbcTypeInfo: optional int32 data_type = 1
    CommandGetCatalogs:
    CommandGetDbSchemas: optional string catalog = 1; optional string db_schema_filter_pattern = 2
    CommandGetTables: optional string catalog = 1; optional string db_schema_filter_pattern = 2;
        optional string table_name_filter_pattern = 3; repeated string table_types = 4; bool include_schema = 5
    CommandGetTableTypes:
    CommandGetPrimaryKeys: optional string catalog = 1; optional string db_schema = 2; string table = 3
    CommandGetExportedKeys: optional string catalog = 1; optional string db_schema = 2; string table = 3
    CommandGetImportedKeys: optional string catalog = 1; optional string db_schema = 2; string table = 3
    CommandGetCrossReference: optional string pk_catalog = 1; optional string pk_db_schema = 2; string pk_table = 3;
        optional string fk_catalog = 4; optional string fk_db_schema = 5; string fk_table = 6
    CommandStatementQuery: string query = 1; optional bytes transaction_id = 2
    CommandStatementSubstraitPlan: optional bytes transaction_id = 2
    CommandPreparedStatementQuery: bytes prepared_statement_handle = 1
    CommandStatementUpdate: string query = 1; optional bytes transaction_id = 2
    CommandPreparedStatementUpdate: bytes prepared_statement_handle = 1
    CommandStatementIngest: string table = 2
    TicketStatementQuery: bytes statement_handle = 1
    DoPutUpdateResult: int64 record_count = 1
    DoPutPreparedStatementResult: optional bytes prepared_statement_handle = 1
    ActionCreatePreparedStatementRequest: string query = 1; optional bytes transaction_id = 2
    ActionCreatePreparedStatementResult: bytes prepared_statement_handle = 1; bytes dataset_schema = 2;
        bytes parameter_schema = 3; optional bool is_update = 4
    ActionClosePreparedStatementRequest: bytes prepared_statement_handle = 1
    ActionCancelQueryRequest: bytes info = 1
    ActionCancelQueryResult: int32 result = 1
    """,
    # A nested message is encoded like bytes: pyarrow parses a FlightInfo itself. Likewise, enumerations are encoded
    # like numbers.
    _FLIGHT: """
    BasicAuth: string username = 2; string password = 3
    CancelFlightInfoRequest: bytes info = 1
    CancelFlightInfoResult: int32 status = 1
    CloseSessionRequest:
    CloseSessionResult: int32 status = 1
    SessionOption: string key = 1; bytes value = 2
    SessionOptionValue: optional string string_value = 1
    SessionOptionError: int32 value = 1
    SetSessionOptionsRequest: repeated bytes session_options = 1
    SetSessionOptionsResult: repeated bytes errors = 1
    GetSessionOptionsRequest:
    GetSessionOptionsResult: repeated bytes session_options = 1
    """,
}
_FIELD: Final = re.compile(r"(?:(optional|repeated) )?(\w+) (\w+) = (\d+)")


def message(name: str, **fields: Any) -> Any:
    """Create a message with some fields."""
    return _classes()[name](**fields)


def parse(name: str, data: bytes) -> Any:
    """Parse bytes as a message type.

    Raises:
        WrongMessage: they are not of that type.
    """
    try:
        return _classes()[name].FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise WrongMessage(f"Not a {name}: {error}") from error


def wrap(inner: Any) -> bytes:
    """Pack a message with its type name (`Any`), as in commands, tickets and results of actions."""
    wrapped = Wrapped(type_url=_URL + inner.DESCRIPTOR.full_name, value=inner.SerializeToString())
    return bytes(wrapped.SerializeToString())


def unwrap(data: bytes) -> Any:
    """Unpack a message from an `Any`.

    Raises:
        WrongMessage: it is not an `Any`, or its type is unknown.
    """
    try:
        wrapped = Wrapped.FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise WrongMessage(f"Not a message of Flight SQL: {error}") from error
    full_name = wrapped.type_url.rpartition("/")[2]
    package, _, name = full_name.rpartition(".")
    if package != _SQL or name not in _classes():
        raise WrongMessage(
            f"Not a message of Flight SQL: {full_name[:100] or 'it has no name'}",
            hint="The server speaks Flight SQL: connect with ADBC, JDBC or the Python package kamu.",
        )
    return parse(name, wrapped.value)


def name_of(inner: Any) -> str:
    """Return the short type name of a message."""
    return str(inner.DESCRIPTOR.name)


@cache
def _classes() -> dict[str, type[Any]]:
    pool = DescriptorPool()
    classes = {}
    for package, text in _MESSAGES.items():
        file = FileDescriptorProto(name=f"odfpy/{package}.proto", package=package, syntax="proto3")
        for name, fields in re.findall(r"^ {4}(\w+):((?:.*\n(?: {8}.*\n)*))", text, re.MULTILINE):
            declared = file.message_type.add(name=name)
            for label, kind, field_name, number in _FIELD.findall(fields):
                _declare(declared, label, kind, field_name, int(number))
        pool.AddSerializedFile(file.SerializeToString())
        names = [message.name for message in file.message_type]
        classes.update({name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in names})
    return classes


def _declare(declared: Any, label: str, kind: str, name: str, number: int) -> None:
    field = declared.field.add(name=name, number=number)
    field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    field.label = FieldDescriptorProto.LABEL_REPEATED if label == "repeated" else FieldDescriptorProto.LABEL_OPTIONAL
    if label == "optional":  # presence is tracked: unset differs from empty
        field.proto3_optional = True
        field.oneof_index = len(declared.oneof_decl)
        declared.oneof_decl.add(name=f"_{name}")
