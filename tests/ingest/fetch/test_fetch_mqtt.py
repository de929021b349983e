"""MQTT: what is a record, what the broker remembers, and that nothing is acknowledged that is not committed."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chains.workspaces import workspace_with
from support.ingest.fetching import NOW
from support.servers.certificates import self_signed
from support.servers.mosquitto import Broker, mosquitto, program_of

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.sources import FetchMqtt, MqttQos, MqttTopicSubscription
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.dataset.identity import DatasetId
from odfpy.errors import FetchError, InvalidValue
from odfpy.ingest.fetch import FetchContext, FetchedFile, SourceOptions, fetch
from odfpy.ingest.fetch.mqtt.step import record_of

LONG, SHORT = 30_000, 100
"""Milliseconds of waiting for messages that come, and for messages that do not."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with mosquitto(tmp_path_factory.mktemp("mosquitto")) as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    return f"odf/{abs(hash(request.node.nodeid))}"


class Reader:
    """Fetches for one dataset."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._id = DatasetId(number.to_bytes(32, "big"))

    def context(self, most: int = 1, idle: int = LONG, **circumstances: Any) -> FetchContext:
        return FetchContext(
            now=NOW,
            root=self._folder,
            scratch=self._folder / "scratch",
            dataset_id=self._id,
            options=SourceOptions(batch_size=most, mqtt_idle_millis=idle),
            **{"timeout": 30.0, **circumstances},
        )

    def inputs(self, step: FetchMqtt, **circumstances: Any) -> list[list[str]]:
        """Lines of each input; all inputs are committed."""
        return [lines(file) for file in fetch(step, self.context(**circumstances))]

    def subscribe(self, step: FetchMqtt) -> None:
        """Let the broker know what to keep from now on."""
        assert self.inputs(step, idle=SHORT) == []


@pytest.fixture
def reader(tmp_path: Path, topic: str) -> Reader:
    return Reader(tmp_path, abs(hash(topic)))


def step_of(broker: Broker, *topics: str, qos: MqttQos | None = MqttQos.AT_LEAST_ONCE, **given: Any) -> FetchMqtt:
    subscriptions = tuple(MqttTopicSubscription(topic, qos) for topic in topics)
    return FetchMqtt(**{"host": "127.0.0.1", "port": broker.port, "topics": subscriptions, **given})


def lines(file: FetchedFile) -> list[str]:
    text = file.path.read_text()
    assert text.endswith("\n")
    return text.splitlines()


# --- Messages --------------------------------------------------------------------------------------------------------


def test_each_message_is_a_line_in_the_order_of_arrival(broker: Broker, topic: str, reader: Reader):
    step = step_of(broker, topic)
    reader.subscribe(step)
    broker.publish(topic, *(f'{{"n": {n}}}' for n in range(100)))
    (received,) = reader.inputs(step, most=100)
    assert received == [f'{{"n": {n}}}' for n in range(100)]


@pytest.mark.parametrize(
    ("payload", "record"),
    [
        (b'{"a": 1}', b'{"a": 1}'),
        (b' {"a":\r\n  1,\n  "b": "\\n"}\n', b'{"a":   1,   "b": "\\n"}'),
        (b"1,2\n", b"1,2"),
        (b"1,2\n3,4", b"1,2\n3,4"),
        (b" \n", b""),
    ],
)
def test_record_of_a_message(payload: bytes, record: bytes):
    assert record_of(payload) == record


@given(st.lists(st.integers() | st.text(), max_size=5), st.sampled_from([None, 0, 2]))
def test_json_stays_the_same_on_one_line(value: list[Any], indent: int | None):
    import json

    record = record_of(json.dumps({"value": value}, indent=indent, ensure_ascii=False).encode())
    assert json.loads(record) == {"value": value}
    assert b"\n" not in record


def test_messages_without_content_are_no_records(broker: Broker, topic: str, reader: Reader):
    step = step_of(broker, topic)
    reader.subscribe(step)
    broker.publish(topic, "", "1", " ")
    assert reader.inputs(step, most=3) == [["1"]]
    broker.publish(topic, "")
    assert reader.inputs(step, most=1) == []
    assert reader.inputs(step, idle=SHORT) == []


def test_several_topics_and_wildcards(broker: Broker, topic: str, reader: Reader):
    step = step_of(broker, f"{topic}/a/+", f"{topic}/b/#")
    reader.subscribe(step)
    for end in ("a/1", "c/1", "b/1/2"):
        broker.publish(f"{topic}/{end}", end)
    assert reader.inputs(step, most=2) == [["a/1", "b/1/2"]]


@pytest.mark.parametrize("qos", [None, MqttQos.AT_MOST_ONCE, MqttQos.AT_LEAST_ONCE, MqttQos.EXACTLY_ONCE])
def test_every_quality_of_service_receives(qos: MqttQos | None, broker: Broker, topic: str, reader: Reader):
    broker.publish(topic, "kept by the broker", retain=True)
    assert reader.inputs(step_of(broker, topic, qos=qos)) == [["kept by the broker"]]


def test_retained_message_comes_once_if_it_is_acknowledged_else_each_time(broker: Broker, topic: str, tmp_path: Path):
    broker.publish(topic, "retained", retain=True)
    once, always = Reader(tmp_path, 1), Reader(tmp_path, 2)
    assert once.inputs(step_of(broker, topic)) == [["retained"]]
    assert once.inputs(step_of(broker, topic), idle=SHORT) == []
    for _ in range(2):
        assert always.inputs(step_of(broker, topic, qos=MqttQos.AT_MOST_ONCE)) == [["retained"]]


# --- What the broker remembers ---------------------------------------------------------------------------------------


def test_nothing_there_is_up_to_date(broker: Broker, topic: str, reader: Reader):
    assert reader.inputs(step_of(broker, topic), idle=SHORT) == []


def test_broker_keeps_what_comes_between_two_pulls(broker: Broker, topic: str, reader: Reader):
    step = step_of(broker, topic)
    reader.subscribe(step)
    broker.publish(topic, "1", "2")
    assert reader.inputs(step, most=2) == [["1", "2"]]
    broker.publish(topic, "3")
    assert reader.inputs(step) == [["3"]]
    assert reader.inputs(step, idle=SHORT) == []


def test_a_pull_takes_so_many_and_leaves_the_rest(broker: Broker, topic: str, reader: Reader):
    step = step_of(broker, topic)
    reader.subscribe(step)
    broker.publish(topic, *map(str, range(7)))
    assert [reader.inputs(step, most=3) for _ in range(2)] == [[["0", "1", "2"]], [["3", "4", "5"]]]
    assert reader.inputs(step) == [["6"]]
    assert reader.inputs(step, idle=SHORT) == []


def test_messages_that_were_not_committed_come_again(broker: Broker, topic: str, reader: Reader):
    step = step_of(broker, topic, qos=MqttQos.EXACTLY_ONCE)
    reader.subscribe(step)
    broker.publish(topic, "1", "2", qos=2)
    for _ in range(2):
        with closing(fetch(step, reader.context(most=2))) as files:
            assert lines(next(files)) == ["1", "2"]  # and then the commit fails
    assert reader.inputs(step, most=2) == [["1", "2"]]
    assert reader.inputs(step, idle=SHORT) == []


def test_datasets_do_not_share_what_they_have_received(broker: Broker, topic: str, tmp_path: Path):
    step = step_of(broker, topic)
    readers = [Reader(tmp_path, number) for number in (3, 4)]
    for each in readers:
        each.subscribe(step)
    broker.publish(topic, "1")
    assert [each.inputs(step) for each in readers] == [[["1"]], [["1"]]]


def test_topics_of_an_earlier_manifest_are_not_taken_in(broker: Broker, topic: str, reader: Reader):
    reader.subscribe(step_of(broker, f"{topic}/old"))
    broker.publish(f"{topic}/old", "old")
    reader.subscribe(step_of(broker, f"{topic}/new"))
    broker.publish(f"{topic}/old", "old")
    broker.publish(f"{topic}/new", "new")
    assert reader.inputs(step_of(broker, f"{topic}/new")) == [["new"]]


def test_lost_connection_after_the_commit_is_told(tmp_path: Path, reader: Reader):
    with mosquitto(tmp_path / "own") as own, closing(fetch(step_of(own, "t"), reader.context())) as files:
        own.publish("t", "retained", retain=True)
        next(files)
        own.stop()
        with pytest.raises(FetchError, match="lost before 1 committed messages were acknowledged") as caught:
            next(files)
        assert "Ledger" in str(caught.value.hint)


def test_lost_connection_before_the_commit(tmp_path: Path, reader: Reader):
    with mosquitto(tmp_path / "own") as own:
        files = fetch(step_of(own, "t"), reader.context(most=2))
        own.publish("t", "retained", retain=True)
        stopping = threading.Thread(target=own.stop_after, args=("as kamu-ingest-",))
        stopping.start()
        with closing(files), pytest.raises(FetchError, match=r"MQTT broker 127\.0\.0\.1:\d+ (was lost|closed)"):
            next(files)
        stopping.join()


# --- Old brokers -----------------------------------------------------------------------------------------------------


@contextmanager
def old_broker(broker: Broker) -> Iterator[int]:
    """A broker that refuses MQTT 5: passes everything else on to a real one."""

    def pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, target):
                end.close()

    def serve(client: socket.socket) -> None:
        hello = client.recv(1 << 16)
        if hello[hello.index(b"MQTT") + 4] == 5:
            client.sendall(b"\x20\x02\x00\x01")
            client.close()
            return
        server = socket.create_connection(("127.0.0.1", broker.port))
        server.sendall(hello)
        threading.Thread(target=pump, args=(server, client), daemon=True).start()
        pump(client, server)

    def accept() -> None:
        try:
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def test_older_protocol_with_its_small_window(broker: Broker, topic: str, reader: Reader):
    inputs: list[list[str]] = []
    with old_broker(broker) as port:
        step = step_of(broker, topic, port=port)
        reader.subscribe(step)
        broker.publish(topic, *map(str, range(25)))
        while (received := list(chain(*inputs))) != [str(n) for n in range(25)]:
            assert len(received) < 25
            inputs += reader.inputs(step, most=25 - len(received), idle=500)
    assert len(inputs) > 1  # mosquitto wants an acknowledgement after twenty


# --- What goes wrong -------------------------------------------------------------------------------------------------


def test_broker_that_is_down(reader: Reader):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    step = FetchMqtt(host="127.0.0.1", port=port, topics=(MqttTopicSubscription("t"),))
    with pytest.raises(FetchError, match=rf"Cannot reach the MQTT broker 127.0.0.1:{port}: Connection refused"):
        reader.inputs(step)


@pytest.mark.parametrize("host", ["", "a" * 64])
def test_host_that_cannot_be_one(host: str, reader: Reader):
    step = FetchMqtt(host=host, port=1883, topics=(MqttTopicSubscription("t"),))
    with pytest.raises(FetchError, match=f"Cannot reach the MQTT broker {host}:1883: .+") as caught:
        reader.inputs(step)
    assert "Check `host`" in str(caught.value.hint)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", None])
def test_server_that_is_no_broker(answer: bytes | None, reader: Reader):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(100)
                if answer is None:
                    client.recv(100)  # until it gives up
                else:
                    client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        step = FetchMqtt(host="127.0.0.1", port=listener.getsockname()[1], topics=(MqttTopicSubscription("t"),))
        with pytest.raises(FetchError) as caught:
            reader.inputs(step, timeout=1.0 if answer is None else 30.0)
        thread.join()
    assert "it may not be the port of an MQTT broker." in str(caught.value.hint)


def test_credentials(tmp_path: Path, reader: Reader):
    passwords = tmp_path / "passwords"
    subprocess.run([program_of("mosquitto_passwd"), "-b", "-c", passwords, "me", "s3cret"], check=True)
    with mosquitto(tmp_path / "own", f"allow_anonymous false\npassword_file {passwords}") as own:
        own.publish("t", "1", retain=True, username="me", password="s3cret")
        step = step_of(own, "t", username="${{ env.WHO }}", password="${{ env.PASSWORD }}")
        assert reader.inputs(step, environment={"WHO": "me", "PASSWORD": "s3cret"}) == [["1"]]
        with pytest.raises(FetchError, match="refuses the connection: Not authorized") as caught:
            reader.inputs(step, environment={"WHO": "me", "PASSWORD": "wr0ng"})
        assert "wr0ng" not in f"{caught.value} {caught.value.hint}"
        with pytest.raises(FetchError, match="The environment variable PASSWORD is not set"):
            reader.inputs(step, environment={"WHO": "me"})


def test_tls(tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch):
    certificate, key = self_signed(tmp_path)
    with mosquitto(tmp_path / "own", f"allow_anonymous true\ncertfile {certificate}\nkeyfile {key}") as own:
        own.publish("t", "1", retain=True, ca=certificate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # the library forgets to close the connection
            with pytest.raises(FetchError, match=r"Cannot reach the MQTT broker 127.*certificate"):
                reader.inputs(step_of(own, "t", host="mqtts://127.0.0.1"))
            gc.collect()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert reader.inputs(step_of(own, "t", host="mqtts://127.0.0.1")) == [["1"]]
        with pytest.raises(FetchError) as caught:
            reader.inputs(step_of(own, "t"))
    assert "it may not be the port of an MQTT broker." in str(caught.value.hint)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": 70000}, "70000 is not a port"),
        ({"topics": ()}, "needs at least one topic"),
        ({"topics": (MqttTopicSubscription("a/#/b"),)}, "topics of the source cannot be subscribed to"),
    ],
)
def test_options_that_cannot_be_used(given: dict[str, Any], message: str, broker: Broker, reader: Reader):
    with pytest.raises((FetchError, InvalidValue), match=message):
        reader.inputs(step_of(broker, "t", **given))


def test_without_the_library_the_error_names_the_extra(broker: Broker, reader: Reader, monkeypatch: Any):
    monkeypatch.delitem(sys.modules, "odfpy.ingest.fetch.mqtt.session", raising=False)
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    with pytest.raises(FetchError, match="Mqtt sources need the Python package paho") as caught:
        reader.inputs(step_of(broker, "t"))
    assert caught.value.hint == "pip install 'opendatafabric[mqtt]'"


# --- In a pull -------------------------------------------------------------------------------------------------------

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: readings
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: Mqtt
        host: 127.0.0.1
        port: {port}
        topics: [{{path: {topic}, qos: AtLeastOnce}}]
      read: {{kind: NdJson, schema: {{fields: [{{name: n, type: {type}}}]}}}}
      merge: {{kind: Append}}
"""


def test_pull_loses_nothing_when_a_commit_fails(broker: Broker, topic: str, tmp_path: Path):
    workspace = workspace_with(tmp_path, MANIFEST.format(port=broker.port, topic=topic, type="Int64"))

    def wait_for(count: int, millis: int = LONG) -> None:
        workspace.config.set("fetch.batchSize", str(count))
        workspace.config.set("mqtt.idleMillis", str(millis))

    wait_for(9, millis=SHORT)
    (first,) = workspace.pull(["readings"])
    assert first.outcome is PullOutcome.UP_TO_DATE
    broker.publish(topic, '{"n": 1}', '{"n": 2.5}')
    wait_for(2)
    (failed,) = workspace.pull(["readings"])
    assert failed.error is not None
    assert failed.error.message.startswith(f"mqtt://127.0.0.1:{broker.port}, line 2")

    repaired = MANIFEST.format(port=broker.port, topic=topic, type="Float64")
    workspace.add(load_snapshots(repaired, "manifest"), replace=True)
    broker.publish(topic, '{"n": 3}')
    wait_for(3)
    (result,) = workspace.pull(["readings"])
    assert (result.error, result.num_records) == (None, 3)
    assert workspace.tail("readings", 9).column("n").to_pylist() == [1.0, 2.5, 3.0]
    wait_for(9, millis=SHORT)
    (again,) = workspace.pull(["readings"])
    assert again.outcome is PullOutcome.UP_TO_DATE
