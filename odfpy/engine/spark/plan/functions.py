"""Review of Spark's expressions: which of them give the same value for the same arguments, everywhere and always.

The names are those of classes in `org.apache.spark.sql.catalyst.expressions`, as they occur in an analyzed plan; they
come from Spark's own registry of functions, and a test compares the two, so that a new release of Spark cannot bring in
a function unnoticed. What is in neither list is refused, too.
"""

from __future__ import annotations

import re
from typing import Final

DETERMINISTIC: Final = frozenset(
    """
    Alias AttributeReference OuterReference Literal Cast KnownNotNull KnownNullable
    With CommonExpressionDef CommonExpressionRef
    LambdaFunction NamedLambdaVariable SortOrder GeneratorOuter PipeExpression TryEval
    GetStructField GetArrayStructFields GetArrayItem GetMapValue CreateNamedStruct CreateArray CreateMap

    And Or Not EqualTo EqualNullSafe EqualNull LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual Between
    In InSet IsNull IsNotNull IsNaN AtLeastNNonNulls Like ILike RLike LikeAll NotLikeAll LikeAny NotLikeAny
    If CaseWhen Coalesce NullIf NullIfResult TypedNullLiteral NullIfZero ZeroIfNull Nvl Nvl2 NaNvl Least Greatest
    AssertTrue RaiseError TypeOf

    Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus UnaryPositive Abs
    TryAdd TrySubtract TryMultiply TryDivide TryMod
    Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Ceil Conv Cos Cosh Cot Csc EulerNumber Exp Expm1 Factorial Floor Hypot
    Log Log10 Log1p Log2 Logarithm Pi Pow Rint Round BRound RoundCeil RoundFloor Sec Signum Sin Sinh Sqrt Tan Tanh
    ToDegrees ToRadians WidthBucket Bin Hex Unhex
    BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseCount BitwiseGet ShiftLeft ShiftRight ShiftRightUnsigned
    BitmapBitPosition BitmapBucketNumber BitmapCount

    Ascii Base32 Base64 UnBase32 UnBase64 BinaryPad BinaryPredicate BitLength Chr Collate Collation ResolvedCollation
    Concat ConcatWs Contains StartsWith EndsWith Decode StringDecode Encode Elt FindInSet FormatNumber FormatString
    InitCap IsValidUTF8 MakeValidUTF8 ValidateUTF8 TryValidateUTF8 JaroWinkler Left Right Length OctetLength
    Levenshtein Lower Upper Luhncheck Mask Overlay Quote RegExpCount RegExpExtract RegExpExtractAll RegExpInStr
    RegExpReplace RegExpSubStr Sentences SoundEx SplitPart StringInstr StringInstrWithOccurrence StringLPad StringRPad
    StringLocate StringRepeat StringReplace StringSpace StringSplit StringTranslate StringTrim StringTrimBoth
    StringTrimLeft StringTrimRight Substring SubstringIndex ToBinary TryToBinary ToCharacter ToNumber TryToNumber
    Crc32 Md5 Murmur3Hash Sha1 Sha2 XxHash64 Hmac AesDecrypt TryAesDecrypt
    ParseUrl TryParseUrl UrlDecode TryUrlDecode UrlEncode

    AddMonths ConvertTimezone DateAdd DateSub DateDiff DateAddInterval DateAddYMInterval DateFormatClass
    DateFromUnixDate DatetimeSub DayName DayOfMonth DayOfWeek DayOfYear Extract FromUTCTimestamp ToUTCTimestamp
    FromUnixTime Hour Minute Second SecondWithFraction Month MonthName MonthsBetween Quarter WeekDay WeekOfYear Year
    YearOfWeek LastDay NextDay HoursOfTime MinutesOfTime SecondsOfTime SecondsOfTimeWithFraction
    MakeDate MakeTime MakeTimestamp MakeTimestampNTZ MakeTimestampFromDateTime TryMakeTimestamp
    TryMakeTimestampFromDateTime MakeDTInterval MakeYMInterval MakeInterval TryMakeInterval
    MicrosToTimestamp MillisToTimestamp SecondsToTimestamp NanosToTimestamp PreciseTimestampConversion
    ParseToDate ParseToTimestamp GetTimestamp ToTime ToTimeParser ToUnixTimestamp UnixTimestamp UnixDate UnixMicros
    UnixMillis UnixNanos UnixSeconds TruncDate TruncTimestamp TimeTrunc TimeBucket TimeDiff TimeAddInterval
    TimeFromMicros TimeFromMillis TimeFromSeconds TimeToMicros TimeToMillis TimeToSeconds
    TimestampAdd TimestampDiff TimestampAddInterval TimestampAddYMInterval TimeAdd
    SubtractDates SubtractTimes SubtractTimestamps MultiplyInterval DivideInterval MultiplyDTInterval
    MultiplyYMInterval DivideDTInterval DivideYMInterval
    ExtractANSIIntervalDays ExtractANSIIntervalHours ExtractANSIIntervalMinutes ExtractANSIIntervalMonths
    ExtractANSIIntervalSeconds ExtractANSIIntervalYears ExtractIntervalDays ExtractIntervalHours
    ExtractIntervalMinutes ExtractIntervalMonths ExtractIntervalSeconds ExtractIntervalYears

    ArrayAppend ArrayCompact ArrayContains ArrayDistinct ArrayExcept ArrayInsert ArrayIntersect ArrayJoin ArrayMax
    ArrayMin ArrayPosition ArrayPrepend ArrayRemove ArrayRepeat ArraySize ArrayUnion ArraysOverlap ArraysZip Flatten
    Get Sequence Slice SortArray ElementAt TryElementAt Reverse Size
    MapConcat MapContainsKey MapEntries MapFromArrays MapFromEntries MapKeys MapValues StringToMap
    ArrayAggregate ArrayExists ArrayFilter ArrayForAll ArraySort ArrayTransform MapFilter MapZipWith TransformKeys
    TransformValues ZipWith
    Explode PosExplode Inline Stack JsonTuple variant.VariantExplode
    VectorCosineSimilarity VectorInnerProduct VectorL2Distance VectorNorm VectorNormalize

    GetJsonObject JsonObjectKeys JsonToStructs LengthOfJsonArray SchemaOfJson StructsToJson
    CsvToStructs SchemaOfCsv StructsToCsv SchemaOfXml StructsToXml XmlToStructs
    xml.XPathBoolean xml.XPathDouble xml.XPathFloat xml.XPathInt xml.XPathList xml.XPathLong xml.XPathShort
    xml.XPathString
    variant.IsValidVariant variant.IsVariantNull variant.ParseJson variant.SchemaOfVariant variant.ToVariantObject
    variant.VariantArrayAppend variant.VariantDelete variant.VariantGet variant.VariantInsert variant.VariantSet
    variant.VariantStripNulls
    st.ST_AsBinary st.ST_GeogFromWKB st.ST_GeomFromWKB st.ST_SetSrid st.ST_Srid
    """.split()  # noqa: SIM905
)

AGGREGATES: Final = frozenset(
    """
    aggregate.AggregateExpression Grouping GroupingID aggregate.PivotFirst
    aggregate.Count aggregate.CountIf aggregate.Min aggregate.Max aggregate.BoolAnd aggregate.BoolOr
    aggregate.BitAndAgg aggregate.BitOrAgg aggregate.BitXorAgg BitmapAndAgg BitmapConstructAgg BitmapOrAgg
    aggregate.Median aggregate.Percentile aggregate.PercentileCont aggregate.PercentileDisc

    aggregate.Sum aggregate.Average aggregate.TrySum aggregate.TryAverage VectorSum VectorAvg
    aggregate.StddevPop aggregate.StddevSamp aggregate.VariancePop aggregate.VarianceSamp aggregate.Skewness
    aggregate.Kurtosis aggregate.CovPopulation aggregate.CovSample aggregate.Corr
    aggregate.RegrAvgX aggregate.RegrAvgY aggregate.RegrCount aggregate.RegrIntercept aggregate.RegrR2
    aggregate.RegrSlope aggregate.RegrSXX aggregate.RegrSXY aggregate.RegrSYY
    """.split()  # noqa: SIM905
)
"""Aggregates that do not depend on the order of rows: those of the first part by nature.

Sums and the like do not, because the engine fixes the order (see `odfpy.engine.spark.analysis.canonical`).
"""

WINDOW_FUNCTIONS: Final = frozenset(
    """
    WindowExpression WindowSpecDefinition SpecifiedWindowFrame CurrentRow UnboundedPreceding UnboundedFollowing
    Rank DenseRank PercentRank CumeDist NTile RowNumber Lag Lead NthValue CounterDiff CounterDiffWithStartTime
    """.split()  # noqa: SIM905
)

_SORT = "sort_array({}(...)) has one order."
_MAX_BY = "{0}(struct(order, value)).value takes the {1} value of those with the {1} order."
OF_ORDER: Final[dict[str, str]] = {
    "aggregate.First": _MAX_BY.format("min", "least"),
    "aggregate.Last": _MAX_BY.format("max", "greatest"),
    "aggregate.AnyValue": "min(...) or max(...) is one of the values, and always the same.",
    "aggregate.MinBy": _MAX_BY.format("min", "least"),
    "aggregate.MaxBy": _MAX_BY.format("max", "greatest"),
    "aggregate.MaxMinByK": "slice(sort_array(collect_list(struct(order, value))), 1, k) has one order.",
    "aggregate.CollectList": _SORT.format("collect_list"),
    "aggregate.CollectSet": _SORT.format("collect_set"),
    "aggregate.ListAgg": "listagg(value) WITHIN GROUP (ORDER BY value) has one order.",
    "aggregate.Mode": "mode(value, true), or mode() WITHIN GROUP (ORDER BY value), takes the least of them.",
}
"""Functions that depend on the order of rows, or on which of several equal rows comes first, with alternatives."""

_CLOCK = "reads the clock"
RANDOM: Final = "is random"
_VECTOR = "uses a random initialization vector"
PLACE: Final = "depends on how the data is stored in files and partitions"
ENVIRONMENT: Final = "depends on the environment of the engine"
RUNS_CODE: Final = "runs code from outside of the query"
READS_FILES: Final = "reads files that are not among the inputs"
_UNKNOWN = "is not among the functions that are known to be deterministic"

REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"), _CLOCK),
    **dict.fromkeys(("Rand", "Randn", "RandStr", "Uniform", "Shuffle", "Uuid"), RANDOM),
    "AesEncrypt": _VECTOR,
    **dict.fromkeys(("InputFileName", "InputFileBlockStart", "InputFileBlockLength"), PLACE),
    **dict.fromkeys(("MonotonicallyIncreasingID", "SparkPartitionID"), PLACE),
    **dict.fromkeys(("CurrentUser", "CurrentCatalog", "CurrentDatabase", "CurrentPath"), ENVIRONMENT),
    **dict.fromkeys(("CurrentTimeZone", "SparkVersion", "Collations", "SQLKeywords", "VariableReference"), ENVIRONMENT),
    **dict.fromkeys(("CallMethodViaReflection", "TryReflect", "StaticInvoke", "Invoke", "NewInstance"), RUNS_CODE),
    **dict.fromkeys(("PythonUDF", "ScalaUDF", "ApplyFunctionExpression", "PythonUDTF"), RUNS_CODE),
    **dict.fromkeys(("FromProtobuf", "ToProtobuf", "FromAvro", "ToAvro", "SchemaOfAvro"), READS_FILES),
    # Unions of sets and of types, which have not been shown to be independent of order.
    **dict.fromkeys(("aggregate.CollectUnion", "variant.SchemaOfVariantAgg", "aggregate.Measure"), _UNKNOWN),
}
"""Expressions known not to be functions of their arguments, each with its reason, as in `rand() is random`."""

_UNSAFE = (RUNS_CODE, READS_FILES)
_APPROXIMATE = re.compile(
    "(aggregate\\.)?(Approx|Hll|Kll|Theta|Tuple|HyperLogLog|HistogramNumeric|CountMinSketch|CountMinSketchAgg)"
)
_KNOWN: Final = DETERMINISTIC | AGGREGATES | WINDOW_FUNCTIONS | OF_ORDER.keys()

_INSTEAD: Final = {
    "is approximate": "Exact are count(DISTINCT ...), percentile(...), and GROUP BY with count(*).",
    _CLOCK: "Take the time from a column of an input, for example its event time.",
    RANDOM: "A hash of columns, such as xxhash64(...), is deterministic.",
    _VECTOR: "A hash, as sha2(..., 256), is always the same; encrypt what must stay secret before it comes in.",
    PLACE: "Use a column of the input: the location of a row is not part of the data.",
    ENVIRONMENT: "Write what is meant as a constant, for example 'UTC'.",
    RUNS_CODE: "Use Spark's built-in functions, or make its result another input.",
    READS_FILES: "Create a dataset from the file, and use it as another input.",
    _UNKNOWN: "Write it with other functions.",
}


def why_not_deterministic(expression: str) -> str | None:
    """Return why an expression may not be used, as the rest of a sentence that begins with it, or None when it may.

    Args:
        expression: name of its class, relative to Spark's package of expressions.
    """
    if expression in _KNOWN:
        return None
    if _APPROXIMATE.match(expression):
        return "is approximate"
    return REFUSED.get(expression, _UNKNOWN)


def what_instead(reason: str) -> str:
    """Return what to write instead of an expression that is refused for a reason of `why_not_deterministic`."""
    return _INSTEAD[reason]


def is_unsafe(reason: str | None) -> bool:
    """Return whether an expression that is refused for this reason may not even be used in an ad hoc query."""
    return reason in _UNSAFE
