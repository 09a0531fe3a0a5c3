"""Frames as messages of a pipe: lines of headers, an empty line, the voxels."""


def headed(image, key, index, **more):
    body = image.tobytes()
    head = {"fovea-key": key, "fovea-shape": ",".join(map(str, image.shape)), "fovea-dtype": str(image.dtype),
            "fovea-index": index, "fovea-bytes": len(body), **{f"fovea-{name}": value for name, value in more.items()}}
    return "".join(f"{name}: {value}\n" for name, value in head.items()).encode() + b"\n" + body
