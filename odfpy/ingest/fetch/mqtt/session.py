"""A session with an MQTT broker, in which messages count as received only once they are acknowledged.

Messages arrive on a thread of the library, which also keeps the connection alive during a commit.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from odfpy.errors import FetchError
from odfpy.extras import needs_extra

with needs_extra("mqtt", "Mqtt sources"):
    from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage, topic_matches_sub
    from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode
    from paho.mqtt.subscribeoptions import SubscribeOptions

_FOR_EVER = 0xFFFFFFFF
_MAX_UNACKNOWLEDGED = 0xFFFF
_NO_TOPIC = "odf/no-topic"
_BAD_CREDENTIALS = ("Bad user name or password", "Not authorized", "Bad authentication method")
_OLD_BROKER = "Unsupported protocol version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """The topics to receive, and their broker.

    Attributes:
        host: name of the broker's machine.
        port: its port.
        is_secure: whether to use TLS.
        client_id: the identity by which the broker remembers the session.
        username: None for anonymous access.
        password: password of the user.
        topics: topic filters, each with whether messages are to be acknowledged.
        most: the maximum number of messages to accept.
        timeout: seconds to wait for the broker's answers.
    """

    host: str
    port: int
    is_secure: bool
    client_id: str
    username: str | None
    password: str | None
    topics: Sequence[tuple[str, bool]]
    most: int
    timeout: float

    @property
    def shown(self) -> str:
        """The name of the broker in messages."""
        return f"the MQTT broker {self.host}:{self.port}"


@contextmanager
def session(wanted: Subscription) -> Iterator[MqttSession]:
    """Open a session, which the broker retains afterwards: messages in between are for the next one.

    Raises:
        FetchError: the broker cannot be reached, or refuses the connection.
    """
    try:
        opened = MqttSession(wanted, MQTTProtocolVersion.MQTTv5)
    except _OldBroker:
        opened = MqttSession(wanted, MQTTProtocolVersion.MQTTv311)
    try:
        yield opened
    finally:
        opened.close()


class MqttSession:
    """A session; use `session` to open one."""

    def __init__(self, wanted: Subscription, protocol: MQTTProtocolVersion) -> None:
        self._wanted = wanted
        self._is_5 = protocol is MQTTProtocolVersion.MQTTv5
        self._answers: queue.Queue[Any] = queue.Queue()
        self._messages: queue.Queue[MQTTMessage | None] = queue.Queue()
        self._unacknowledged: set[int] = set()
        self._taken = 0
        self._client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=wanted.client_id,
            clean_session=None if self._is_5 else False,
            protocol=protocol,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        self._client.disable_logger()  # relevant events become errors, which name the broker
        self._client.connect_timeout = wanted.timeout
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_unsubscribe = self._on_subscribe
        self._client.on_message = self._on_message
        self._client.on_disconnect = self._on_disconnect
        try:
            self._connect()
            self._subscribe()
        except BaseException:
            self.close()
            raise

    def next_batch(self, most: int, idle: float) -> list[MQTTMessage]:
        """Return messages, until none arrives for some seconds or there are enough.

        Raises:
            FetchError: the connection to the broker is lost.
        """
        batch: list[MQTTMessage] = []
        while len(batch) < most:
            try:
                message = self._messages.get(timeout=idle)
            except queue.Empty:
                break
            if message is None:
                raise FetchError(
                    f"The connection to {self._wanted.shown} was lost",
                    hint="Nothing is lost: unacknowledged messages are delivered again with the next pull.",
                )
            batch.append(message)
        return batch

    def acknowledge(self, batch: Sequence[MQTTMessage]) -> None:
        """Acknowledge messages, and make sure that the broker has received that.

        Raises:
            FetchError: the connection to the broker is lost.
        """
        due = [message for message in batch if message.qos > 0]
        if not due:
            return
        for message in due:
            # Removed before the broker can process the acknowledgement: it may reuse the number from then on.
            self._unacknowledged.discard(message.mid)
            self._client.ack(message.mid, message.qos)
        # Acknowledgements have no response, and are lost if we disconnect while messages arrive. So a request without
        # effect follows. Brokers process in order, so its response confirms the acknowledgements before it.
        self._client.unsubscribe(_NO_TOPIC)
        if not self._client.is_connected() or self._answer("word that it knows what is committed") is None:
            raise FetchError(
                f"The connection to {self._wanted.shown} was lost before {len(due)} committed messages were "
                "acknowledged; it will send them again",
                hint="A Ledger merge drops duplicates.",
            )

    def close(self) -> None:
        """Disconnect; the broker retains the session."""
        self._client.disconnect()
        self._client.loop_stop()

    # --- Opening ---

    def _connect(self) -> None:
        wanted = self._wanted
        if wanted.username is not None:
            self._client.username_pw_set(wanted.username, wanted.password)
        options: dict[str, Any] = {}
        if self._is_5:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = _FOR_EVER
            properties.ReceiveMaximum = min(wanted.most, _MAX_UNACKNOWLEDGED)
            options = {"clean_start": False, "properties": properties}
        try:
            if wanted.is_secure:
                self._client.tls_set()
            self._client.connect(wanted.host, wanted.port, **options)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise FetchError(
                f"Cannot reach {wanted.shown}: {reason}", hint="Check `host` and `port`, and whether the broker runs."
            ) from error
        self._client.loop_start()
        code = self._answer("an answer")
        if code is None:
            raise FetchError(f"{_capital(wanted.shown)} closed the connection without an answer", hint=_NOT_MQTT)
        if code.is_failure:
            if self._is_5 and code.getName() == _OLD_BROKER:
                raise _OldBroker(f"{_capital(wanted.shown)} has an old version of MQTT")
            is_credentials = code.getName() in _BAD_CREDENTIALS
            raise FetchError(
                f"{_capital(wanted.shown)} refuses the connection: {code.getName()}",
                hint="Check `username` and `password`; a secret is written as ${{ env.NAME }}."
                if is_credentials
                else "The broker's log may have the reason.",
            )

    def _subscribe(self) -> None:
        topics: list[Any] = []
        for path, is_acknowledged in self._wanted.topics:
            qos = int(is_acknowledged)
            if self._is_5:
                # A retained message is sent once if it is acknowledged, otherwise with each pull: it may have changed.
                retain = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB if qos else SubscribeOptions.RETAIN_SEND_ON_SUBSCRIBE
                topics.append((path, SubscribeOptions(qos=qos, retainHandling=retain)))
            else:
                topics.append((path, qos))
        try:
            result, _ = self._client.subscribe(topics)
        except ValueError as error:
            raise FetchError(f"The topics of the source cannot be subscribed to: {error}", hint=_TOPICS) from error
        codes = None if result is not MQTTErrorCode.MQTT_ERR_SUCCESS else self._answer("word that it has subscribed")
        if codes is None:
            raise FetchError(f"{_capital(self._wanted.shown)} closed the connection", hint=_TOPICS)
        for (path, _), code in zip(self._wanted.topics, codes, strict=False):
            if code.is_failure:
                raise FetchError(
                    f"{_capital(self._wanted.shown)} refuses the topic {path!r}: {code.getName()}", hint=_TOPICS
                )

    def _answer(self, what: str) -> Any:
        try:
            return self._answers.get(timeout=self._wanted.timeout)
        except queue.Empty:
            raise FetchError(
                f"{_capital(self._wanted.shown)} gives no {what.removeprefix('an ')} within "
                f"{self._wanted.timeout:g} seconds",
                hint=_NOT_MQTT,
            ) from None

    # --- Callbacks of the library, on its thread ---

    def _on_connect(self, _: Client, __: Any, ___: ConnectFlags, code: ReasonCode, ____: Any) -> None:
        self._answers.put(code)

    def _on_subscribe(self, _: Client, __: Any, ___: int, codes: list[ReasonCode], ____: Any) -> None:
        self._answers.put(codes)

    def _on_disconnect(self, _: Client, __: Any, ___: DisconnectFlags, ____: ReasonCode, _____: Any) -> None:
        self._answers.put(None)
        self._messages.put(None)

    def _on_message(self, client: Client, _: Any, message: MQTTMessage) -> None:
        if message.qos > 0 and message.mid in self._unacknowledged:
            return  # a premature retransmission
        if not self._is_wanted(message.topic):
            client.ack(message.mid, message.qos)  # subscribed to by an earlier manifest
            return
        if self._taken == self._wanted.most:
            return  # for the next session
        self._taken += 1
        if message.qos > 0:
            self._unacknowledged.add(message.mid)
        self._messages.put(message)

    def _is_wanted(self, topic: str) -> bool:
        for path, _ in self._wanted.topics:
            own = path.split("/", 2)[2] if path.startswith("$share/") and path.count("/") > 1 else path
            with suppress(ValueError):
                if topic_matches_sub(own, topic):
                    return True
        return False


class _OldBroker(FetchError):
    """The broker does not know MQTT 5."""


_NOT_MQTT = "Check `port`: it may not be the port of an MQTT broker."
_TOPICS = "Check `topics`, and the permissions of this user."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
