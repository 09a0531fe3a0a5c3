"""A broker that wants TLS and a password: settings come from a file, and the password is shown nowhere."""
import ctypes
import ctypes.util
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import FOVEA, Skip, long, main, run, wait_for
from kafka import Broker

try:
    import numpy
except ImportError:
    numpy = None

USER, PASSWORD = "lab", "do-not-tell-4711"
TEXT = 's = read("scans/*.npy")\nwrite(mean(s), "means.csv")\n'


def settings(folder, broker, password=PASSWORD, certificate=None, name="client.properties", mechanism="PLAIN"):
    (pathlib.Path(folder) / name).write_text(
        f"security.protocol=SASL_SSL\nssl.ca.location={certificate or broker.certificate}\nsasl.mechanisms={mechanism}\n"
        f"sasl.username={USER}\nsasl.password={password}\n")
    return name


def holds(folder, secret):
    """Files of Fovea's below a folder that have these bytes in them."""
    ours = [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and path.suffix != ".properties"]
    return [path for path in ours if "kafka" not in path.relative_to(folder).parts and secret.encode() in path.read_bytes()]


def lines(path):
    return path.read_text().splitlines()[1:] if path.exists() else []


@long
def frames_come_and_results_go_through_tls_with_a_password_that_is_shown_nowhere(folder):
    if numpy is None:
        raise Skip("no numpy")
    (pathlib.Path(folder) / "p.fov").write_text(TEXT)
    stack = numpy.random.default_rng(0).integers(0, 256, (6, 16, 16)).astype("uint8")
    numpy.save(pathlib.Path(folder) / "s.npy", stack)
    with Broker(folder, user=USER, password=PASSWORD) as broker:
        here = pathlib.Path(folder) / "live"
        here.mkdir()
        (here / "p.fov").write_text(TEXT)
        config = settings(here, broker)
        topic, results, dead = (f"kafka://{broker.secure}/{name}" for name in ("in", "out", "dead"))
        for name in ("out", "dead"):
            broker.topic(name)
        publish = ["publish", "../s.npy", "--slices", "--to", topic, "--kafka-config", config]
        told = run(*publish, folder=here)
        process = subprocess.Popen([FOVEA, "stream", "p.fov", "--bind", f"s={topic}", "--to", results, "--dead", dead,
                                    "--limit", "12", "--json", "--kafka-config", config], cwd=here, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        wait_for("the first frames", lambda: len(lines(here / "means.csv")) == 6)
        seen = b"".join(pathlib.Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        status = run("status", "--json", folder=here, code=None)
        again = run(*publish, "--first", "6", folder=here)
        out, said = process.communicate(timeout=600)
        assert process.returncode == 0 and "12 of 12 frames done" in said, said
        assert len(broker.messages("out", "%k\n").splitlines()) == 12
        means = sorted(float(line.split(",")[2]) for line in lines(here / "means.csv"))
        assert numpy.allclose(means, sorted(2 * [float(image.mean()) for image in stack]))
        all_told = out + said + told.stderr + again.stderr + status.stdout
        assert PASSWORD not in all_told and PASSWORD.encode() not in seen, all_told
        assert not holds(here, PASSWORD), holds(here, PASSWORD)

        def refused(config, *command):
            said = run(*command, "--kafka-config", config, folder=folder, code=2).stderr
            assert PASSWORD not in said and "wrong-4712" not in said, said
            return said
        listen = ["stream", "p.fov", "--bind", f"s=kafka://{broker.secure}/in", "--once"]
        wrong = settings(folder, broker, "wrong-4712", name="wrong.properties")
        assert "uthentication" in refused(wrong, *listen)
        assert "uthentication" in refused(wrong, "publish", "s.npy", "--to", f"kafka://{broker.secure}/in")
        distrusted = settings(folder, broker, certificate="/etc/ssl/certs/ca-certificates.crt", name="other.properties")
        assert "ertificate" in refused(distrusted, *listen)


@long
def scram_works_where_the_library_can_do_it(folder):
    """Of librdkafka before 2.6.1, Kafka 4 takes no SCRAM: it sends its own part of the nonce twice."""
    if numpy is None:
        raise Skip("no numpy")
    version = ctypes.CDLL(ctypes.util.find_library("rdkafka") or "librdkafka.so.1").rd_kafka_version()
    numpy.save(pathlib.Path(folder) / "s.npy", numpy.zeros((6, 16, 16), "uint8"))
    (pathlib.Path(folder) / "p.fov").write_text(TEXT)
    with Broker(folder, user=USER, password=PASSWORD) as broker:
        run("publish", "-q", "s.npy", "--slices", "--to", broker.topic("in"), folder=folder)
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            here = pathlib.Path(folder) / mechanism
            here.mkdir()
            (here / "p.fov").write_text(TEXT)
            listen = ["stream", "-q", "p.fov", "--bind", f"s=kafka://{broker.secure}/in?group={mechanism}", "--once"]
            wrong = settings(here, broker, "wrong-4712", name="wrong.properties", mechanism=mechanism)
            said = run(*listen, "--kafka-config", wrong, folder=here, code=2).stderr
            assert "uthentication" in said and "wrong-4712" not in said, said
            if version < 0x020601ff:
                assert "librdkafka 2.6.1" in said, said
                continue
            run(*listen, "--kafka-config", settings(here, broker, mechanism=mechanism), folder=here)
            assert len(lines(here / "means.csv")) == 6 and not holds(here, PASSWORD)
    if version < 0x020601ff:
        raise Skip("librdkafka is older than 2.6.1, and Kafka 4 takes no SCRAM from it")


main()
