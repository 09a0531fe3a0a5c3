"""Kafka's faults, by the broker that librdkafka brings for tests: error codes, and a broker that is gone for a while. It needs
neither Java nor a network."""
import ctypes
import ctypes.util
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, main, run, test, wait_for

try:
    import numpy
except ImportError:
    numpy = None

FETCH, OFFSET_COMMIT, METADATA, JOIN_GROUP = 1, 8, 3, 11  # requests, as the protocol numbers them
TIMED_OUT, NOT_LEADER, NOT_AVAILABLE, LOADING, REBALANCING = 7, 6, 15, 14, 27  # and error codes


class MockBroker:
    def __init__(self, **settings):
        name = ctypes.util.find_library("rdkafka")
        if not name or numpy is None:
            raise Skip("no librdkafka or no numpy here")
        if not (pathlib.Path(FOVEA).parent / "fovea-kafka.so").exists():
            raise Skip("this build has no Kafka")
        self.library = ctypes.CDLL(name)
        for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(self.library, function).restype = ctypes.c_void_p
        self.library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        why = ctypes.create_string_buffer(512)
        client = self.library.rd_kafka_new(0, ctypes.c_void_p(self.library.rd_kafka_conf_new()), why, 512)
        assert client, why.value
        self.client = ctypes.c_void_p(client)
        self.cluster = ctypes.c_void_p(self.library.rd_kafka_mock_cluster_new(self.client, 1))
        self.address = self.library.rd_kafka_mock_cluster_bootstraps(self.cluster).decode()

    def topic(self, name, partitions=1):
        assert not self.library.rd_kafka_mock_topic_create(self.cluster, name.encode(), partitions, 1)
        return f"kafka://{self.address}/{name}"

    def fail(self, request, *errors):
        """The next requests of this kind are answered so."""
        codes = (ctypes.c_int * len(errors))(*errors)
        self.library.rd_kafka_mock_push_request_errors_array(self.cluster, ctypes.c_int16(request), ctypes.c_size_t(len(errors)),
                                                             codes)

    def down(self, gone):
        function = self.library.rd_kafka_mock_broker_set_down if gone else self.library.rd_kafka_mock_broker_set_up
        function(self.cluster, ctypes.c_int32(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.rd_kafka_mock_cluster_destroy(self.cluster)
        self.library.rd_kafka_destroy(self.client)


def publish(folder, topic, scan, count, first=0):
    stack = numpy.random.default_rng(first).integers(0, 256, (count, 16, 16)).astype("uint8")
    numpy.save(pathlib.Path(folder) / f"{scan}.npy", stack)
    run("publish", "-q", f"{scan}.npy", "--slices", "--first", str(first), "--to", topic, folder=folder)
    return stack


def means(folder):
    path = pathlib.Path(folder) / "means.csv"
    return path.read_text().splitlines()[1:] if path.exists() else []


def start(folder, topic, *options):
    (pathlib.Path(folder) / "p.fov").write_text('s = read("live/*.npy")\nwrite(mean(s), "means.csv")\n')
    return subprocess.Popen([FOVEA, "stream", "p.fov", "--bind", f"s={topic}", *options], cwd=folder, stderr=subprocess.PIPE,
                            text=True, env=dict(os.environ))


@test
def answers_with_errors_are_tried_again_and_every_frame_comes_once(folder):
    with MockBroker() as broker:
        topic = broker.topic("frames")
        publish(folder, topic, "a", 30)
        broker.fail(JOIN_GROUP, NOT_AVAILABLE, LOADING)
        broker.fail(FETCH, NOT_LEADER, TIMED_OUT, NOT_LEADER)
        broker.fail(OFFSET_COMMIT, LOADING, TIMED_OUT, REBALANCING)
        broker.fail(METADATA, NOT_AVAILABLE)
        process = start(folder, topic, "--limit", "60")
        wait_for("the first frames", lambda: len(means(folder)) == 30)
        broker.fail(FETCH, TIMED_OUT, NOT_LEADER)
        publish(folder, topic, "a", 30, first=30)
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0 and "60 of 60 frames done" in said, said
        assert len(means(folder)) == len(set(means(folder))) == 60


@test
def a_broker_that_is_gone_for_a_while_is_waited_for(folder):
    with MockBroker() as broker:
        topic = broker.topic("frames")
        publish(folder, topic, "a", 10)
        process = start(folder, topic, "--limit", "20")
        wait_for("the first frames", lambda: len(means(folder)) == 10)
        broker.down(True)
        broker.down(False)
        publish(folder, topic, "a", 10, first=10)
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0 and len(set(means(folder))) == 20, said


@test
def settings_of_the_client_come_from_a_file_and_its_secrets_are_shown_nowhere(folder):
    secret = "do-not-tell-4711"
    with MockBroker() as broker:
        topic = broker.topic("frames")
        publish(folder, topic, "a", 5)
        config = pathlib.Path(folder) / "client.properties"
        config.write_text(f"# ours\nclient.id=beamline\nsasl.username=lab\nsasl.password={secret}\n")
        process = start(folder, topic, "--limit", "10", "--kafka-config", "client.properties", "--to", broker.topic("results"))
        wait_for("the first frames", lambda: len(means(folder)) == 5)
        told = b"".join(pathlib.Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        publish(folder, topic, "a", 5, first=5)
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said
        kept = [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and path != config]
        assert secret not in said and secret.encode() not in told, said
        assert not [path for path in kept if secret.encode() in path.read_bytes()], "a file holds the password"
        config.write_text("sasl.pasword=x\n")
        process = start(folder, topic, "--once", "--kafka-config", "client.properties")
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 2 and "sasl.pasword" in said, said
        config.write_text(f"security.protocol=sasl_plaintext\nsasl.mechanisms=PLAIN\nsasl.username=lab\nsasl.password={secret}\n")
        process = start(folder, topic, "--once", "--kafka-config", "client.properties")
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 2 and secret not in said and "no broker answers" in said, said


main()
