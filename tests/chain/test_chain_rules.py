"""Every rule of the chain: what it refuses, what it lets pass; the same on append and on verification."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.chains.events import (
    CITIES,
    DERIVATIVE,
    NOW,
    RAW_ARROW,
    ROOT,
    SCHEMA,
    add,
    checkpoint,
    columns,
    day,
    execute,
    hash_of,
    id_of,
    polling,
    push,
    rows,
    set_transform,
    source_state,
    sql,
    taken,
    unchecked,
)

from odfpy.chain import rules
from odfpy.chain.events import (
    AddData,
    DisablePollingSource,
    DisablePushSource,
    MetadataEvent,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetVocab,
    TransformInput,
)
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import validate
from odfpy.chain.read_steps import ReadNdJson
from odfpy.chain.rules import (
    AmbiguousReadSchema,
    InputIntervalBroken,
    InvalidTransformInputs,
    NoOpEvent,
    OffsetsNotSequential,
    PrevCheckpointMismatch,
    PreviousBlockMismatch,
    PrevOffsetMismatch,
    SchemaEvolutionViolation,
    SchemaMissing,
    SeedMustBeFirst,
    SequenceBroken,
    SourceIncomplete,
    SourcesExclude,
    SourceUnknown,
    SystemTimeWentBack,
    TransformInputsMismatch,
    TransformMissing,
    TransformNotNormalized,
    WatermarkWentBack,
    WrongKindOfDataset,
)
from odfpy.chain.sources import FetchEthereumLogs
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.schemas import schema
from odfpy.data.schemas.schema import DataField, DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.attachments import AttachmentEmbedded, AttachmentsEmbedded
from odfpy.dataset.names import DatasetAlias
from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.errors import ChainRuleViolation, IntegrityError

LEGACY = SetDataSchema(raw_arrow_schema=RAW_ARROW)
SET = [ROOT, SCHEMA]
TEN = [*SET, add(0, 9, new_watermark=day(10))]
RUN = [DERIVATIVE, set_transform("a", "b"), SCHEMA]
FIRST = execute(taken("a", new_block_hash="a1", new_offset=9), taken("b"), start=0, end=9)
RAN = [*RUN, FIRST]
KEPT = taken("a", prev_block_hash="a1", prev_offset=9)


@dataclass(frozen=True)
class Case:
    """An event after some history, and the rule that refuses it, if any."""

    name: str
    history: list[MetadataEvent]
    event: MetadataEvent
    rule: type[ChainRuleViolation] | None = None


def fine(name: str, history: list[Any], event: Any) -> Case:
    return Case(name, history, event)


def no(rule: type[ChainRuleViolation], name: str, history: list[Any], event: Any) -> Case:
    return Case(name, history, event, rule)


def evolved(**types: schema.DataType) -> SetDataSchema:
    return SetDataSchema(schema=columns(**types))


def of(**types: schema.DataType) -> SetDataSchema:
    return SetDataSchema(schema=DataSchema(tuple(DataField(name, type_) for name, type_ in types.items())))


def steps(*aliases: str | None, **rest: Any) -> TransformSql:
    return TransformSql(
        "spark", queries=tuple(SqlQueryStep(alias=alias, query="SELECT 1") for alias in aliases), **rest
    )


CASES = [
    # The first block is a Seed, and no other is
    fine("a chain begins with a Seed", [], ROOT),
    no(SeedMustBeFirst, "a chain cannot begin with data", [], add(0, 9)),
    no(SeedMustBeFirst, "a chain cannot begin with info", [], SetInfo("a")),
    no(SeedMustBeFirst, "a second Seed", [ROOT], ROOT),
    no(SeedMustBeFirst, "another Seed later", TEN, DERIVATIVE),
    # A watermark never goes back, nor from set to unset
    fine("a first watermark", SET, add(new_watermark=day(1))),
    fine("a watermark moves on", TEN, add(10, 19, new_watermark=day(11))),
    fine("a watermark stays", TEN, add(10, 19, new_watermark=day(10))),
    fine("a watermark moves without rows", TEN, add(after=9, new_watermark=day(11))),
    fine("there may be none for long", [*SET, add(0, 9)], add(10, 19)),
    no(WatermarkWentBack, "a watermark goes back", TEN, add(10, 19, new_watermark=day(9))),
    no(WatermarkWentBack, "a watermark is lost", TEN, add(10, 19)),
    no(WatermarkWentBack, "a nanosecond back", TEN, add(10, 19, new_watermark=Timestamp(day(10).nanos - 1))),
    no(WatermarkWentBack, "a watermark of a derivative goes back",
       [*RUN, replace(FIRST, new_watermark=day(5))], execute(KEPT, taken("b"), start=10, end=19, new_watermark=day(4))),
    # Rows start where the last slice ended, and end no earlier than they start
    fine("the first rows start at 0", SET, add(0, 0)),
    fine("rows go on", TEN, add(10, 10, new_watermark=day(10))),
    no(OffsetsNotSequential, "first rows that do not start at 0", SET, AddData(new_data=rows(1, 9))),
    no(OffsetsNotSequential, "more rows than a state can count", SET, AddData(new_data=rows(0, 2**63 - 1))),
    no(OffsetsNotSequential, "a gap", TEN, AddData(prev_offset=9, new_data=rows(11, 19), new_watermark=day(10))),
    no(OffsetsNotSequential, "an overlap", TEN, AddData(prev_offset=9, new_data=rows(9, 19), new_watermark=day(10))),
    no(OffsetsNotSequential, "an end before the start", TEN, add(10, 9, new_watermark=day(10))),
    no(OffsetsNotSequential, "a gap in a derivative", RAN, replace(execute(KEPT, taken("b"), start=11, end=12), prev_offset=9)),
    # prevOffset is the last row so far, carried through blocks without data
    fine("carried through a block without rows",
         [*TEN, add(after=9, new_watermark=day(11))], add(10, 19, new_watermark=day(11))),
    no(PrevOffsetMismatch, "no prevOffset after rows", TEN, AddData(new_data=rows(10, 19), new_watermark=day(10))),
    no(PrevOffsetMismatch, "no prevOffset without rows", TEN, AddData(new_watermark=day(11))),
    no(PrevOffsetMismatch, "prevOffset before the first rows", SET, AddData(prev_offset=9, new_data=rows(10, 19))),
    no(PrevOffsetMismatch, "a wrong one",  TEN, AddData(prev_offset=8, new_data=rows(9, 19), new_watermark=day(10))),
    no(PrevOffsetMismatch, "in a derivative", RAN, execute(KEPT, taken("b"), new_watermark=day(1))),
    # prevCheckpoint is the checkpoint of the last event of the same kind
    fine("a first checkpoint", SET, add(0, 9, new_checkpoint=checkpoint("c1"))),
    fine("a next checkpoint", [*SET, add(0, 9, new_checkpoint=checkpoint("c1"))],
         add(10, 19, prev_checkpoint=hash_of("c1"), new_checkpoint=checkpoint("c2"))),
    fine("a checkpoint ends", [*SET, add(0, 9, new_checkpoint=checkpoint("c1"))],
         add(10, 19, prev_checkpoint=hash_of("c1"))),
    no(PrevCheckpointMismatch, "one where there was none", SET, add(0, 9, prev_checkpoint=hash_of("c1"))),
    no(PrevCheckpointMismatch, "none where there was one", [*SET, add(0, 9, new_checkpoint=checkpoint("c1"))], add(10, 19)),
    no(PrevCheckpointMismatch, "one that has ended already",
       [*SET, add(0, 9, new_checkpoint=checkpoint("c1")), add(10, 19, prev_checkpoint=hash_of("c1"))],
       add(20, 29, prev_checkpoint=hash_of("c1"))),
    no(PrevCheckpointMismatch, "another one in a derivative", [*RUN, replace(FIRST, new_checkpoint=checkpoint("c1"))],
       execute(KEPT, taken("b"), start=10, end=19, prev_checkpoint=hash_of("c2"))),
    # Data events change something
    fine("only a source state", [ROOT], AddData(new_source_state=source_state("1"))),
    fine("only another source state", [ROOT, AddData(new_source_state=source_state("1"))],
         AddData(new_source_state=source_state("2"))),
    fine("only the state of another source", [ROOT, AddData(new_source_state=source_state("1"))],
         AddData(new_source_state=source_state("1", "other"))),
    fine("back to the source before, as others write it",
         [ROOT, AddData(new_source_state=source_state("1")), AddData(new_source_state=source_state("1", "other"))],
         AddData(new_source_state=source_state("1"))),
    fine("a source state ends, as others write it",
         [ROOT, AddData(new_watermark=day(1), new_source_state=source_state("1"))], AddData(new_watermark=day(1))),
    fine("only a checkpoint", [ROOT], AddData(new_checkpoint=checkpoint("c"))),
    fine("the same source state with new rows", [*SET, add(0, 9, new_source_state=source_state("1"))],
         add(10, 19, new_source_state=source_state("1"))),
    no(NoOpEvent, "nothing at all", SET, AddData()),
    no(NoOpEvent, "nothing but attributes", SET, AddData(extra=ExtraAttributes('{"a":1}'))),
    no(NoOpEvent, "nothing new", TEN, add(after=9, new_watermark=day(10))),
    no(NoOpEvent, "the same checkpoint, watermark and source state",
       [*SET, add(0, 9, new_checkpoint=checkpoint("c"), new_watermark=day(1), new_source_state=source_state("1"))],
       add(after=9, prev_checkpoint=hash_of("c"), new_checkpoint=checkpoint("c"), new_watermark=day(1),
           new_source_state=source_state("1"))),
    no(NoOpEvent, "a checkpoint that ends, and nothing else", [ROOT, AddData(new_checkpoint=checkpoint("c"))],
       AddData(prev_checkpoint=hash_of("c"))),
    fine("a run with inputs but without rows", [*RUN, replace(FIRST, new_watermark=day(5))],
         execute(taken("a", prev_block_hash="a1", new_block_hash="a2", prev_offset=9), taken("b"), prev_offset=9,
                 new_watermark=day(5))),
    no(NoOpEvent, "a run with neither inputs nor rows", [*RUN, replace(FIRST, new_watermark=day(5))],
       execute(KEPT, taken("b"), prev_offset=9, new_watermark=day(5))),
    no(NoOpEvent, "a run that has inputs and nothing else", RUN,
       execute(taken("a", new_block_hash="a1"), taken("b"))),
    no(NoOpEvent, "the same push source", [ROOT, push()], push()),
    fine("the same push source under another name", [ROOT, push()], push("another")),
    fine("another push source under the same name", [ROOT, push()], push(read=ReadNdJson(ddl_schema=("a INT",)))),
    fine("the first push source again", [ROOT, push(), push(read=ReadNdJson(encoding="x"))], push()),
    fine("a push source disabled and added again", [ROOT, push(), DisablePushSource("default")], push()),
    no(NoOpEvent, "the same schema", SET, SCHEMA),
    no(NoOpEvent, "the same schema with its defaults written out", [ROOT, evolved(t=schema.Timestamp())],
       evolved(t=schema.Timestamp(schema.TimeUnit.MILLISECOND, "UTC"))),
    # The schema is recorded before the first rows
    fine("events without rows come before any schema", [ROOT], AddData(new_watermark=day(1))),
    fine("rows after a schema", [ROOT, AddData(new_source_state=source_state("1")), SCHEMA], add(0, 9)),
    fine("rows after a schema that older writers recorded", [ROOT, LEGACY], add(0, 9)),
    no(SchemaMissing, "rows before any schema", [ROOT], add(0, 9)),
    no(SchemaMissing, "rows of a derivative before any schema", RUN[:2], FIRST),
    no(SchemaMissing, "a schema event without schema", [ROOT], SetDataSchema()),
    # The schema changes only in allowed ways
    fine("attributes are added", SET,
         SetDataSchema(schema=replace(CITIES, extra=ExtraAttributes('{"a":1}')))),
    fine("attributes of a field change", SET, SetDataSchema(schema=DataSchema(
        (*CITIES.fields[:-1], replace(CITIES.fields[-1], extra=ExtraAttributes('{"a":1}')))))),
    fine("an optional field is added", SET,
         evolved(city=schema.String(), population=schema.Option(schema.Int64()), url=schema.Option(schema.String()))),
    fine("fields are reordered", SET, evolved(population=schema.Option(schema.Int64()), city=schema.String())),
    fine("an optional field is added to a struct", [ROOT, evolved(s=schema.Struct((DataField("a", schema.Bool()),)))],
         evolved(s=schema.Struct((DataField("a", schema.Bool()), DataField("b", schema.Option(schema.Bool())))))),
    fine("a schema takes the place of one that older writers recorded", [ROOT, LEGACY], of(a=schema.Int64(), b=schema.Bool())),
    fine("fields may become optional then", [ROOT, LEGACY], of(a=schema.Option(schema.Int64()), b=schema.Bool())),
    fine("optional fields may be added then", [ROOT, LEGACY],
         of(a=schema.Int64(), b=schema.Bool(), c=schema.Option(schema.Bool()))),
    no(SchemaEvolutionViolation, "fields may not be removed then", [ROOT, LEGACY], of(a=schema.Int64())),
    no(SchemaEvolutionViolation, "fields may not be retyped then", [ROOT, LEGACY], of(a=schema.Int32(), b=schema.Bool())),
    no(SchemaEvolutionViolation, "required fields may not be added then", [ROOT, LEGACY],
       of(a=schema.Int64(), b=schema.Bool(), c=schema.Bool())),
    no(SchemaEvolutionViolation, "a raw schema can be read", [ROOT], SetDataSchema(raw_arrow_schema=b"no schema")),
    no(SchemaEvolutionViolation, "a raw schema evolves as any other", SET, LEGACY),
    fine("older writers could record it again", [ROOT, LEGACY], LEGACY),
    no(SchemaEvolutionViolation, "a field is removed", SET, evolved(city=schema.String())),
    no(SchemaEvolutionViolation, "a field is renamed", SET,
       evolved(pity=schema.String(), population=schema.Option(schema.Int64()))),
    no(SchemaEvolutionViolation, "a field is retyped", SET,
       evolved(city=schema.String(), population=schema.Option(schema.Int32()))),
    no(SchemaEvolutionViolation, "an optional field becomes required", SET,
       evolved(city=schema.String(), population=schema.Int64())),
    no(SchemaEvolutionViolation, "a required field becomes optional", SET,
       evolved(city=schema.Option(schema.String()), population=schema.Option(schema.Int64()))),
    no(SchemaEvolutionViolation, "a required field is added", SET,
       evolved(city=schema.String(), population=schema.Option(schema.Int64()), url=schema.String())),
    no(SchemaEvolutionViolation, "a field is retyped while another is added", SET,
       evolved(city=schema.Int64(), population=schema.Option(schema.Int64()), url=schema.Option(schema.String()))),
    no(SchemaEvolutionViolation, "an item of a list is retyped", [ROOT, evolved(a=schema.List(schema.Int32()))],
       evolved(a=schema.List(schema.Int64()))),
    # Sources and AddData belong to root datasets, transforms to derivative ones
    fine("a polling source of a root dataset", [ROOT], polling()),
    fine("a transform of a derivative dataset", [DERIVATIVE], set_transform("a")),
    no(WrongKindOfDataset, "a polling source of a derivative", [DERIVATIVE], polling()),
    no(WrongKindOfDataset, "a push source of a derivative", [DERIVATIVE], push()),
    no(WrongKindOfDataset, "AddData in a derivative", RUN, add(0, 9)),
    no(WrongKindOfDataset, "a transform of a root dataset", [ROOT], set_transform("a")),
    no(WrongKindOfDataset, "ExecuteTransform in a root dataset", SET, FIRST),
    # ExecuteTransform follows a SetTransform
    fine("a run after its transform", RUN, FIRST),
    no(TransformMissing, "a run without a transform", [DERIVATIVE, SCHEMA], FIRST),
    # The inputs of a run are those of the transform, in order
    no(TransformInputsMismatch, "an input less", RUN, execute(taken("a", new_block_hash="a1"), new_watermark=day(1))),
    no(TransformInputsMismatch, "an input more", RUN,
       execute(taken("a", new_block_hash="a1"), taken("b"), taken("c"), new_watermark=day(1))),
    no(TransformInputsMismatch, "another order", RUN,
       execute(taken("b"), taken("a", new_block_hash="a1"), new_watermark=day(1))),
    no(TransformInputsMismatch, "another input", RUN,
       execute(taken("a", new_block_hash="a1"), taken("c"), new_watermark=day(1))),
    no(TransformInputsMismatch, "no inputs", RUN, execute(new_watermark=day(1))),
    # Each input goes on where the last run ended
    fine("an input goes on", RAN, execute(
        taken("a", prev_block_hash="a1", new_block_hash="a2", prev_offset=9, new_offset=19), taken("b"), start=10, end=19)),
    fine("an input has new blocks without rows", RAN, execute(
        taken("a", prev_block_hash="a1", new_block_hash="a2", prev_offset=9), taken("b"), start=10, end=19)),
    fine("the other input starts later", RAN, execute(
        KEPT, taken("b", new_block_hash="b1", new_offset=4), start=10, end=19)),
    fine("after a run that did not touch an input", [*RAN, execute(KEPT, taken("b"), prev_offset=9, new_watermark=day(1))],
         execute(taken("a", prev_block_hash="a1", new_block_hash="a2", prev_offset=9, new_offset=10), taken("b"),
                 prev_offset=9, new_watermark=day(1))),
    no(InputIntervalBroken, "an input forgets its block", RAN, execute(
        taken("a", new_block_hash="a2", prev_offset=9, new_offset=19), taken("b"), start=10, end=19)),
    no(InputIntervalBroken, "an input starts at another block", RAN, execute(
        taken("a", prev_block_hash="a0", new_block_hash="a2", prev_offset=9), taken("b"), start=10, end=19)),
    no(InputIntervalBroken, "an input forgets its offset", RAN, execute(
        taken("a", prev_block_hash="a1", new_block_hash="a2", new_offset=19), taken("b"), start=10, end=19)),
    no(InputIntervalBroken, "an input starts at another offset", RAN, execute(
        taken("a", prev_block_hash="a1", new_block_hash="a2", prev_offset=8, new_offset=19), taken("b"), start=10, end=19)),
    no(InputIntervalBroken, "a block before the first run", RUN, execute(
        taken("a", prev_block_hash="a0", new_block_hash="a1"), taken("b"), start=0, end=9)),
    no(InputIntervalBroken, "an offset before the first run", RUN, execute(
        taken("a", new_block_hash="a1", prev_offset=1), taken("b"), start=0, end=9)),
    no(InputIntervalBroken, "new blocks that are the old ones", RAN, execute(
        taken("a", prev_block_hash="a1", new_block_hash="a1", prev_offset=9), taken("b"), start=10, end=19)),
    no(InputIntervalBroken, "new rows without new blocks", RAN, execute(
        taken("a", prev_block_hash="a1", prev_offset=9, new_offset=19), taken("b"), start=10, end=19)),
    no(InputIntervalBroken, "new rows that are the old ones", RAN, execute(
        taken("a", prev_block_hash="a1", new_block_hash="a2", prev_offset=9, new_offset=9), taken("b"), start=10, end=19)),
    no(InputIntervalBroken, "new rows before the old ones", RAN, execute(
        taken("a", prev_block_hash="a1", new_block_hash="a2", prev_offset=9, new_offset=3), taken("b"), start=10, end=19)),
    # A transform has inputs, each once, with id and alias
    no(InvalidTransformInputs, "no inputs at all", [DERIVATIVE], set_transform()),
    no(InvalidTransformInputs, "an input twice", [DERIVATIVE], set_transform("a", "b", "a")),
    no(InvalidTransformInputs, "an input without alias", [DERIVATIVE], set_transform(inputs=(TransformInput(id_of("a")),))),
    no(InvalidTransformInputs, "an input by name", [DERIVATIVE],
       set_transform(inputs=(TransformInput(DatasetAlias.parse("a"), "a"),))),
    # `query` unset, `queries` not empty, all but the last with an alias
    fine("several steps", [DERIVATIVE], set_transform("a", transform=steps("x", "y", None))),
    no(TransformNotNormalized, "`query`", [DERIVATIVE], set_transform("a", transform=TransformSql("spark", query="SELECT 1"))),
    no(TransformNotNormalized, "`query` and `queries`", [DERIVATIVE], set_transform("a", transform=steps(None, query="SELECT 1"))),
    no(TransformNotNormalized, "no `queries`", [DERIVATIVE], set_transform("a", transform=TransformSql("spark"))),
    no(TransformNotNormalized, "empty `queries`", [DERIVATIVE], set_transform("a", transform=steps())),
    no(TransformNotNormalized, "a last step with an alias", [DERIVATIVE], set_transform("a", transform=steps("x"))),
    no(TransformNotNormalized, "another step without alias", [DERIVATIVE], set_transform("a", transform=steps(None, None))),
    fine("a preprocess step", [ROOT], polling(preprocess=sql())),
    no(TransformNotNormalized, "preprocess of a polling source", [ROOT], polling(preprocess=TransformSql("spark", query="SELECT 1"))),
    no(TransformNotNormalized, "preprocess of a push source", [ROOT], push(preprocess=steps("x"))),
    # Polling and push sources exclude each other until disabled
    fine("a polling source takes the place of another", [ROOT, polling()], polling(read=ReadNdJson(encoding="x"))),
    fine("a push source after a disabled polling source", [ROOT, polling(), DisablePollingSource()], push()),
    fine("a polling source after all push sources are disabled",
         [ROOT, push("a"), push("b"), DisablePushSource("a"), DisablePushSource("b")], polling()),
    no(SourcesExclude, "a push source next to a polling source", [ROOT, polling()], push()),
    no(SourcesExclude, "a polling source next to a push source", [ROOT, push()], polling()),
    no(SourcesExclude, "a polling source next to one of two push sources", [ROOT, push("a"), push("b"), DisablePushSource("a")],
       polling()),
    # Only an active source can be disabled
    fine("disabling a push source", [ROOT, push("a"), push("b")], DisablePushSource("b")),
    fine("disabling a polling source", [ROOT, polling()], DisablePollingSource()),
    no(SourceUnknown, "disabling an unknown push source", [ROOT, push("a")], DisablePushSource("b")),
    no(SourceUnknown, "disabling a push source twice", [ROOT, push("a"), DisablePushSource("a")], DisablePushSource("a")),
    no(SourceUnknown, "disabling no polling source", [ROOT, push("a")], DisablePollingSource()),
    no(SourceUnknown, "disabling a polling source twice", [ROOT, polling(), DisablePollingSource()], DisablePollingSource()),
    # A source of Ethereum logs says of which chain
    fine("Ethereum logs by chain", [ROOT], polling(fetch=FetchEthereumLogs(chain_id=0))),
    fine("Ethereum logs by node", [ROOT], polling(fetch=FetchEthereumLogs(node_url="wss://example.com"))),
    no(SourceIncomplete, "Ethereum logs of no chain", [ROOT], polling(fetch=FetchEthereumLogs(filter="x"))),
    # A read step has `schema` or `ddlSchema`, not both
    fine("`ddlSchema`", [ROOT], push(read=ReadNdJson(ddl_schema=("a INT",)))),
    fine("`schema`", [ROOT], push(read=ReadNdJson(schema=CITIES))),
    no(AmbiguousReadSchema, "both in a push source", [ROOT], push(read=ReadNdJson(ddl_schema=("a INT",), schema=CITIES))),
    no(AmbiguousReadSchema, "both in a polling source", [ROOT], polling(read=ReadNdJson(ddl_schema=(), schema=CITIES))),
    # Descriptions may come at any time
    fine("info", [DERIVATIVE], SetInfo("a")),
    fine("a licence", TEN, SetLicense(short_name="CC0", name="CC0 1.0", website_url="https://example.com")),
    fine("a vocabulary", [ROOT], SetVocab(event_time_column="date")),
    fine("attachments", [ROOT], SetAttachments(AttachmentsEmbedded((AttachmentEmbedded("README.md", "a"),)))),
]  # fmt: skip

EVERY_CASE = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.rule.__name__ if case.rule else 'fine'}: {case.name}"
)


@EVERY_CASE
def test_on_append(case: Case):
    chain = DatasetLayout.in_memory().chain
    state = validate([])
    for event in case.history:
        state = chain.commit(chain.prepare(state, [event], NOW))
    if case.rule is None:
        after = chain.commit(chain.prepare(state, [case.event], NOW))
        assert chain.head() == after.head != state.head
        assert chain.state() == after
    else:
        with pytest.raises(case.rule) as caught:
            chain.prepare(state, [case.event], NOW)
        assert type(caught.value) is case.rule
        assert chain.refs.get("head") == state.head


@EVERY_CASE
def test_on_verification(case: Case):
    blocks = unchecked([*case.history, case.event])
    if case.rule is None:
        assert validate(blocks).head == blocks[-1].hash
    else:
        with pytest.raises(case.rule) as caught:
            validate(blocks)
        assert type(caught.value) is case.rule
        assert f"Block {len(case.history)} ({type(case.event).__name__}, {blocks[-1].hash}): " in caught.value.message


# --- Rules that only a chain from elsewhere can break ----------------------------------------------------------------

BROKEN_LINKS = [
    (PreviousBlockMismatch, "names another block", TEN, {"prev_block_hash": hash_of("x")}),
    (PreviousBlockMismatch, "names none", TEN, {"prev_block_hash": None}),
    (PreviousBlockMismatch, "first, and names one", [ROOT], {"prev_block_hash": hash_of("x")}),
    (SequenceBroken, "has the number of the block before", TEN, {"sequence_number": 1}),
    (SequenceBroken, "leaves out a number", TEN, {"sequence_number": 3}),
    (SequenceBroken, "first, and not 0", [ROOT], {"sequence_number": 1}),
    (SystemTimeWentBack, "is older than the block before", TEN, {"system_time": Timestamp(NOW.nanos - 1)}),
]


@pytest.mark.parametrize(
    ("rule", "name", "events", "changes"), BROKEN_LINKS, ids=[f"{r.__name__}: {n}" for r, n, *_ in BROKEN_LINKS]
)
def test_links(rule: type[ChainRuleViolation], name: str, events: list[MetadataEvent], changes: dict[str, Any]):
    del name
    assert validate(unchecked(events)), "without the change it is fine"
    with pytest.raises(rule):
        validate(unchecked(events, **changes))


def test_blocks_are_not_taken_out_exchanged_or_repeated():
    blocks = unchecked([*TEN, add(10, 19, new_watermark=day(11)), SetInfo("a")])
    assert validate(blocks)
    for at in range(1, len(blocks) - 1):
        with pytest.raises(PreviousBlockMismatch):
            validate(blocks[:at] + blocks[at + 1 :])
        with pytest.raises(PreviousBlockMismatch):
            validate([*blocks[:at], blocks[at + 1], blocks[at], *blocks[at + 2 :]])
        with pytest.raises(PreviousBlockMismatch):
            validate([*blocks[: at + 1], blocks[at], *blocks[at + 1 :]])


def test_equal_system_times_are_fine():
    chain = DatasetLayout.in_memory().chain
    state = chain.commit(chain.prepare(validate([]), [ROOT, SetInfo("a")], NOW))
    assert state.system_time == NOW
    with pytest.raises(SystemTimeWentBack):
        chain.prepare(state, [SetInfo("b")], Timestamp(NOW.nanos - 1))


def test_every_rule_has_a_case():
    every_rule = {
        value for value in vars(rules).values() if isinstance(value, type) and issubclass(value, ChainRuleViolation)
    }
    tested = {case.rule for case in CASES} | {rule for rule, *_ in BROKEN_LINKS}
    assert tested == (every_rule - {ChainRuleViolation}) | {None}
    assert all(rule.__name__ in (rules.__doc__ or "") for rule in every_rule - {ChainRuleViolation})
    assert all(issubclass(rule, IntegrityError) for rule in every_rule)


# --- What others write and we do not ---------------------------------------------------------------------------------

REPEATED = [
    [ROOT, SetInfo("a", ("b",))],
    [ROOT, SetLicense(short_name="CC0", name="CC0 1.0", website_url="https://example.com")],
    [ROOT, SetAttachments(AttachmentsEmbedded((AttachmentEmbedded("README.md", "a"),)))],
    [ROOT, SetVocab(event_time_column="date")],
    [ROOT, polling()],
    [DERIVATIVE, set_transform("a")],
]


@pytest.mark.parametrize("events", REPEATED, ids=lambda events: type(events[-1]).__name__)
def test_repeated_descriptions_are_read_but_not_written(events: list[MetadataEvent]):
    repeated = (
        [*events, SetInfo("between"), events[-1]] if not isinstance(events[-1], SetInfo) else [*events, events[-1]]
    )
    assert validate(unchecked(repeated)).sequence_number == len(repeated) - 1
    chain = DatasetLayout.in_memory().chain
    with pytest.raises(NoOpEvent):
        chain.prepare(validate([]), repeated, NOW)


def test_going_back_to_what_was_said_before_is_no_repetition():
    chain = DatasetLayout.in_memory().chain
    assert chain.prepare(validate([]), [ROOT, SetInfo("a"), SetInfo("b"), SetInfo("a")], NOW).encoded
