"""Fetching the messages of an MQTT broker (ODF specification, "FetchStep: Mqtt").

The broker stores messages between pulls: the session is identified by the dataset's id and does not expire. Each
message is a record on its own line. Messages are acknowledged after they were committed, so that a message with
`AtLeastOnce` or `ExactlyOnce` is sent again after a failed commit. Both are subscribed to with quality of service 1:
with 2, the broker would forget a message once it is delivered, before the commit. So there is no source state, and
messages are duplicated after a crash between commit and acknowledgement.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.sources import FetchMqtt, MqttQos
from odfpy.errors import FetchError, InternalError, InvalidValue
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.templates import expand

if TYPE_CHECKING:
    from odfpy.ingest.fetch.mqtt.session import Subscription

_SECURE, _SECURE_PORT = "mqtts://", 8883
_LINE_BREAKS = re.compile(rb"[\r\n]+")
_WHITESPACE = b" \t\r\n"


def fetch_mqtt(step: FetchMqtt, context: FetchContext) -> Iterator[FetchedFile]:
    """Yield messages until none arrives for a second, or there are enough for one pull.

    A broker may limit the number of unacknowledged messages. Then there are several inputs, one after the other.

    Raises:
        FetchError: the broker cannot be reached, refuses the connection, or disconnects.
        InvalidValue: an option of the step cannot be used.
    """
    wanted = _subscription(step, context)
    from odfpy.ingest.fetch.mqtt.session import session

    shown = f"mqtt://{step.host.rpartition('://')[2]}:{step.port}"
    left = wanted.most
    with session(wanted) as broker:
        while left and (batch := broker.next_batch(left, context.options.mqtt_idle_millis / 1000)):
            left -= len(batch)
            path, size = _save((bytes(message.payload) for message in batch), shown, context)
            if size:
                yield FetchedFile(path=path, name=shown, state=None, event_time=context.now, is_temporary=True)
            broker.acknowledge(batch)


def record_of(payload: bytes) -> bytes:
    """Return a message as a line: surrounding whitespace is removed, JSON over several lines is put on one."""
    text = payload.strip(_WHITESPACE)
    return _LINE_BREAKS.sub(b" ", text) if text.startswith((b"{", b"[")) else text


def _save(payloads: Iterable[bytes], shown: str, context: FetchContext) -> tuple[Path, int]:
    """Write the messages to a file; return its size."""
    size = 0
    try:
        context.scratch.mkdir(parents=True, exist_ok=True)
        with closing(tempfile.NamedTemporaryFile(dir=context.scratch, prefix="mqtt-", delete=False)) as file:
            for payload in payloads:
                if record := record_of(payload):
                    size += file.write(record + b"\n")
    except OSError as error:
        raise FetchError(f"Cannot write the data of {shown} to {context.scratch}: {error.strerror}") from error
    if size > context.max_bytes:
        raise FetchError(
            f"{shown} sent messages of {size} bytes, {context.max_bytes} are allowed",
            hint="`odf config set fetch.maxSize` allows more, `fetch.batchSize` limits the messages of a batch.",
        )
    if context.progress is not None:
        context.progress(size, None)
    return Path(file.name), size


def _subscription(step: FetchMqtt, context: FetchContext) -> Subscription:
    from odfpy.ingest.fetch.mqtt.session import Subscription

    if context.dataset_id is None:
        raise InternalError("Fetching from MQTT needs the dataset's id")
    if not 0 < step.port < 1 << 16:
        raise InvalidValue(f"{step.port} is not a port", hint="MQTT usually uses 1883, or 8883 with TLS.")
    if not step.topics:
        raise InvalidValue("A Mqtt source needs at least one topic", hint="topics: [{path: sensors/#}]")
    environment = context.environment
    host = expand(step.host, environment)
    context.options.bounds.require_host(host)
    return Subscription(
        host=host.removeprefix(_SECURE).removeprefix("mqtt://"),
        port=step.port,
        is_secure=host.startswith(_SECURE) or step.port == _SECURE_PORT,
        # Like in the reference implementation, so that both programs share the session of a dataset.
        client_id=f"kamu-ingest-{str(context.dataset_id).removeprefix('did:odf:')}",
        username=None if step.username is None else expand(step.username, environment),
        password=None if step.password is None else expand(step.password, environment),
        topics=tuple((topic.path, topic.qos not in (None, MqttQos.AT_MOST_ONCE)) for topic in step.topics),
        most=max(1, context.options.batch_size),
        timeout=context.timeout,
    )
