"""A bucket of moto, an imitation of S3 on loopback, and Amazon's own client for it."""
import contextlib
import os
import socket
import subprocess
import time
import urllib.request

from interop import environment, python

# moto checks signatures only of users that it knows: after this many requests, those that make the user.
FREE_REQUESTS = 3
MAKE_USER = """
import boto3, json, sys
free = dict(endpoint_url=sys.argv[1] if len(sys.argv) > 1 else ADDRESS, aws_access_key_id="x", aws_secret_access_key="x",
            region_name="us-east-1")
iam = boto3.client("iam", **free)
iam.create_user(UserName="ada")
key = iam.create_access_key(UserName="ada")["AccessKey"]
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="ada", PolicyName="all", PolicyDocument=json.dumps(policy))
s3 = boto3.client("s3", **dict(free, aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"]))
s3.create_bucket(Bucket="bucket")
"""


@contextlib.contextmanager
def bucket(folder):
    """A server with an empty bucket, and what the environment of its only user says."""
    server_program = environment("moto", "moto", "boto3") / "moto_server"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([server_program, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=dict(os.environ, INITIAL_NO_AUTH_ACTION_COUNT=str(FREE_REQUESTS)))
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/moto-api/", timeout=5).close()
                break
            time.sleep(0.1)
        script = f"ADDRESS = {address!r}\n{MAKE_USER}print(json.dumps([key['AccessKeyId'], key['SecretAccessKey']]))"
        identity, secret = python("moto", script, folder, "moto", "boto3")
        yield {"AWS_ENDPOINT_URL": address, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
               "AWS_ACCESS_KEY_ID": identity, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": ""}
    finally:
        server.terminate()
        server.wait()


def boto(text, folder, place):
    """What a program with Amazon's client prints."""
    return python("moto", f"import boto3, json, pathlib\ns3 = boto3.client('s3')\n{text}", folder, **place)


def upload(folder, place):
    text = """
for path in pathlib.Path("up").rglob("*"):
    if path.is_file():
        s3.upload_file(str(path), "bucket", str(path.relative_to("up")))
print("true")"""
    boto(text, folder, place)
