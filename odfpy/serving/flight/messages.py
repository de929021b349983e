"""The messages of Flight SQL: pyarrow has the calls, and not what is said in them.

They are written down here as in the standard (`FlightSql.proto`, `Flight.proto`), in short: the classes are made from
that when they are first needed. Fields that nothing here looks at are left out; readers skip them.
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
    # A message inside of another one is bytes on the wire: pyarrow reads a FlightInfo itself. So are enumerations
    # numbers.
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
    """A message with some fields."""
    return _classes()[name](**fields)


def parse(name: str, data: bytes) -> Any:
    """The message that some bytes are.

    Raises:
        WrongMessage: they are not of that name.
    """
    try:
        return _classes()[name].FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise WrongMessage(f"Not a {name}: {error}") from error


def wrap(inner: Any) -> bytes:
    """A message together with its name, as commands, tickets and results of actions travel."""
    wrapped = Wrapped(type_url=_URL + inner.DESCRIPTOR.full_name, value=inner.SerializeToString())
    return bytes(wrapped.SerializeToString())


def unwrap(data: bytes) -> Any:
    """The message that came together with its name.

    Raises:
        WrongMessage: it did not, or there is no message of that name.
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
    """The short name of a message."""
    return str(inner.DESCRIPTOR.name)


@cache
def _classes() -> dict[str, type[Any]]:
    pool = DescriptorPool()
    found = {}
    for package, text in _MESSAGES.items():
        file = FileDescriptorProto(name=f"odfpy/{package}.proto", package=package, syntax="proto3")
        for name, fields in re.findall(r"^ {4}(\w+):((?:.*\n(?: {8}.*\n)*))", text, re.MULTILINE):
            declared = file.message_type.add(name=name)
            for label, kind, field_name, number in _FIELD.findall(fields):
                _declare(declared, label, kind, field_name, int(number))
        pool.AddSerializedFile(file.SerializeToString())
        names = [one.name for one in file.message_type]
        found.update({name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in names})
    return found


def _declare(declared: Any, label: str, kind: str, name: str, number: int) -> None:
    field = declared.field.add(name=name, number=number)
    field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    field.label = FieldDescriptorProto.LABEL_REPEATED if label == "repeated" else FieldDescriptorProto.LABEL_OPTIONAL
    if label == "optional":  # whether it is there can be told from whether it is empty
        field.proto3_optional = True
        field.oneof_index = len(declared.oneof_decl)
        declared.oneof_decl.add(name=f"_{name}")
