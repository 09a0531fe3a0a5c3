"""A real Kafka broker on this machine (KRaft: broker and controller in one process), for the tests of streams.

Its jars come from Maven once, into build/kafka-jars or $KAFKA_JARS; where Maven cannot be reached the tests are skipped by name.
"""
import pathlib
import shutil
import signal
import socket
import subprocess

import maven
from fovea_test import Skip, wait_for

VERSION = "4.3.1"
ARTIFACTS = f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36"
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
num.partitions={partitions}
message.max.bytes=67108864
replica.fetch.max.bytes=67108864
"""


def find_jars():
    for program in ("java", "kcat"):
        if not shutil.which(program):
            raise Skip(f"no {program} here: apt-get install openjdk-17-jre-headless maven kcat")
    return maven.find_jars("kafka", "KAFKA_JARS", *ARTIFACTS)


def free_ports():
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            two.bind(("127.0.0.1", 0))
            return one.getsockname()[1], two.getsockname()[1]


class Broker:
    """with Broker(folder) as broker: broker.address is HOST:PORT; kill() and start() may come in between."""

    def __init__(self, folder, partitions=1):
        self.jars = find_jars()
        self.folder = pathlib.Path(folder) / "kafka"
        self.folder.mkdir()
        self.port, controller = free_ports()
        self.address = f"127.0.0.1:{self.port}"
        self.settings = self.folder / "server.properties"
        self.settings.write_text(SETTINGS.format(port=self.port, controller=controller, folder=self.folder,
                                                 partitions=partitions))
        self.process = None
        identity = "fovea-test-cluster-000"
        self.java("kafka.tools.StorageTool", "format", "-t", identity, "-c", self.settings, wait=True)

    def java(self, *words, wait=False):
        command = ["java", "-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self.jars}/*",
                   "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", *map(str, words)]
        with open(self.folder / "log", "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if wait:
            process.wait(timeout=300)
            assert process.returncode == 0, (self.folder / "log").read_text()[-400:]
        return process

    def answers(self):
        return subprocess.run(["kcat", "-b", self.address, "-L", "-m", "1"], capture_output=True, check=False).returncode == 0

    def start(self):
        self.process = self.java("kafka.Kafka", self.settings)
        wait_for("the broker", lambda: self.answers() or self.process.poll() is not None)
        assert self.process.poll() is None, (self.folder / "log").read_text()[-400:]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def topic(self, name):
        """Makes a topic: asking for one as a producer does that."""
        def there():
            done = subprocess.run(["kcat", "-b", self.address, "-L", "-t", name], capture_output=True, text=True, check=False)
            return "leader 1" in done.stdout
        wait_for(f"the topic {name}", there)
        return f"kafka://{self.address}/{name}"

    def messages(self, topic, form="%s\n"):
        """All messages of a topic as text."""
        done = subprocess.run(["kcat", "-b", self.address, "-t", topic, "-C", "-e", "-q", "-f", form], capture_output=True,
                              check=True, timeout=120)
        return done.stdout

    def send(self, topic, body, key=None, **headers):
        """One message, by kcat."""
        path = self.folder / "message"
        path.write_bytes(body)
        command = ["kcat", "-b", self.address, "-t", topic, "-P"]
        for name, value in headers.items():
            command += ["-H", f"{name.replace('_', '-')}={value}"]
        command += ["-k", key] if key else []
        subprocess.run([*command, str(path)], check=True, timeout=60)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()
