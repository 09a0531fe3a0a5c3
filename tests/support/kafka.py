"""A real Kafka broker on this machine (KRaft: broker and controller in one process), for the tests of streams.

Its jars come from Maven once, into build/kafka-jars or $KAFKA_JARS; where Maven cannot be reached the tests are skipped by name.
"""
import ctypes
import ctypes.util
import pathlib
import shutil
import signal
import socket
import subprocess

import maven
from fovea_test import Skip, wait_for
from wire import Wire

VERSION = "4.3.1"
ARTIFACTS = f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36"
SMALL = "-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"
USUAL = "-Xms1g", "-Xmx1g", "-XX:+UseG1GC"  # as Kafka's own scripts start it
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
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
log.retention.check.interval.ms=5000
log.segment.delete.delay.ms=1000
message.max.bytes=67108864
replica.fetch.max.bytes=67108864
"""

# A second door of the broker, for those who know the password and trust its certificate.
SECURE = """listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.pem
ssl.client.auth=none
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_{user}="{password}";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
"""

# A second door that tells its clients to come through another port, where a wire begins.
WIRED = """listeners=PLAINTEXT://127.0.0.1:{port},WIRED://127.0.0.1:{door},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},WIRED://127.0.0.1:{wire}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,WIRED:PLAINTEXT,CONTROLLER:PLAINTEXT
"""


def find_jars():
    for program in ("java", "kcat"):
        if not shutil.which(program):
            raise Skip(f"no {program} here: apt-get install openjdk-17-jre-headless maven kcat")
    return maven.find_jars("kafka", "KAFKA_JARS", *ARTIFACTS)


def free_ports(count=2):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Admin:
    """What kcat cannot do with topics, by librdkafka."""

    def __init__(self, address):
        name = ctypes.util.find_library("rdkafka")
        if not name:
            raise Skip("no librdkafka here")
        self.library, self.address = ctypes.CDLL(name), address
        library = self.library
        for function in ("conf_new", "new", "queue_new", "NewTopic_new", "NewPartitions_new", "queue_poll"):
            getattr(library, f"rd_kafka_{function}").restype = ctypes.c_void_p
        why = ctypes.create_string_buffer(256)
        conf = ctypes.c_void_p(library.rd_kafka_conf_new())
        library.rd_kafka_conf_set(conf, b"bootstrap.servers", address.encode(), why, ctypes.c_size_t(256))
        self.client = ctypes.c_void_p(library.rd_kafka_new(0, conf, why, ctypes.c_size_t(256)))
        self.queue = ctypes.c_void_p(library.rd_kafka_queue_new(self.client))

    def ask(self, function, wish):
        wishes = (ctypes.c_void_p * 1)(wish)
        getattr(self.library, f"rd_kafka_{function}")(self.client, wishes, ctypes.c_size_t(1), None, self.queue)
        event = ctypes.c_void_p(self.library.rd_kafka_queue_poll(self.queue, 60000))
        assert event and not self.library.rd_kafka_event_error(event), function
        self.library.rd_kafka_event_destroy(event)

    def make(self, topic, partitions=1, **settings):
        why = ctypes.create_string_buffer(256)
        wish = self.library.rd_kafka_NewTopic_new(topic.encode(), partitions, 1, why, ctypes.c_size_t(256))
        for name, value in settings.items():
            self.library.rd_kafka_NewTopic_set_config(ctypes.c_void_p(wish), name.replace("_", ".").encode(), str(value).encode())
        self.ask("CreateTopics", wish)

    def grow(self, topic, partitions):
        why = ctypes.create_string_buffer(256)
        wish = self.library.rd_kafka_NewPartitions_new(topic.encode(), ctypes.c_size_t(partitions), why, ctypes.c_size_t(256))
        self.ask("CreatePartitions", wish)

    def begin(self, topic, *bodies):
        """Messages in a transaction, which stays open until it is ended by what this gives: ended(commit)."""
        library, why = self.library, ctypes.create_string_buffer(256)
        library.rd_kafka_topic_new.restype = ctypes.c_void_p
        conf = ctypes.c_void_p(library.rd_kafka_conf_new())
        for name, value in (("bootstrap.servers", self.address), ("transactional.id", f"test-{topic}")):
            library.rd_kafka_conf_set(conf, name.encode(), value.encode(), why, ctypes.c_size_t(256))
        client = ctypes.c_void_p(library.rd_kafka_new(0, conf, why, ctypes.c_size_t(256)))
        for step in ("init_transactions", "begin_transaction"):
            function = getattr(library, f"rd_kafka_{step}")
            function.restype = ctypes.c_void_p
            assert not (function(client, 60000) if step.startswith("init") else function(client)), step
        handle = ctypes.c_void_p(library.rd_kafka_topic_new(client, topic.encode(), None))
        for body in bodies:
            assert not library.rd_kafka_produce(handle, -1, 2, body, ctypes.c_size_t(len(body)), None, ctypes.c_size_t(0), None)
        assert not library.rd_kafka_flush(client, 60000)

        def ended(commit):
            function = library.rd_kafka_commit_transaction if commit else library.rd_kafka_abort_transaction
            function.restype = ctypes.c_void_p
            assert not function(client, 60000)
            library.rd_kafka_topic_destroy(handle)
            library.rd_kafka_destroy(client)
        return ended

    def close(self):
        self.library.rd_kafka_queue_destroy(self.queue)
        self.library.rd_kafka_destroy(self.client)


class Broker:
    """with Broker(folder) as broker: broker.address is HOST:PORT; kill() and start() may come in between. With a user and a
    password it has a door with TLS and SASL (PLAIN, SCRAM): broker.secure is that address, broker.certificate what to trust.
    wired: it has a door behind broker.wire, which can be cut; broker.wired is that address. data: folder for what it keeps of
    messages, if that should lie on another disk. java: options of its virtual machine; as it is, it starts soon."""

    def __init__(self, folder, partitions=1, user=None, password=None, wired=False, data=None, java=SMALL):
        self.jars, self.options = find_jars(), java
        self.folder = pathlib.Path(folder) / "kafka"
        self.folder.mkdir(parents=True)
        self.port, controller, secure = free_ports(3)
        self.address = f"127.0.0.1:{self.port}"
        self.settings = self.folder / "server.properties"
        self.settings.write_text(SETTINGS.format(port=self.port, controller=controller, data=data or self.folder / "data",
                                                 partitions=partitions))
        self.process = None
        if user:
            self.secure, self.certificate = f"127.0.0.1:{secure}", self.folder / "certificate.pem"
            self.make_certificate()
            with open(self.settings, "a", encoding="utf-8") as file:  # what comes later counts
                file.write(SECURE.format(port=self.port, controller=controller, secure=secure, folder=self.folder, user=user,
                                         password=password))
        self.wire = Wire(secure) if wired else None
        if wired:
            self.wired = f"127.0.0.1:{self.wire.port}"
            with open(self.settings, "a", encoding="utf-8") as file:
                file.write(WIRED.format(port=self.port, controller=controller, door=secure, wire=self.wire.port))
        identity = "fovea-test-cluster-000"
        known = []
        for number in (256, 512) if user else ():
            known += ["--add-scram", f"SCRAM-SHA-{number}=[name={user},password={password}]"]
        self.java("kafka.tools.StorageTool", "format", "-t", identity, "-c", self.settings, *known, wait=True)

    def make_certificate(self):
        if not shutil.which("openssl"):
            raise Skip("no openssl here to make a certificate")
        key = self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", self.certificate,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                       capture_output=True)
        (self.folder / "broker.pem").write_text(key.read_text() + self.certificate.read_text())

    def java(self, *words, wait=False):
        command = ["java", *self.options, "-cp", f"{self.jars}/*",
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
        if self.wire:
            self.wire.__enter__()
        return self

    def __exit__(self, *_):
        if self.wire:
            self.wire.__exit__()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()
