#!/usr/bin/env python3
"""The sample notebook, executed by Jupyter's own client: every cell works and shows what it should."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from fovea_test import PATIENCE, ROOT, Skip, main, test  # noqa: E402


@test
def the_sample_notebook_runs(folder):
    try:
        import nbclient
        import nbformat
        import ipykernel  # noqa: F401
    except ImportError as missing:
        raise Skip(f"{missing}: scripts/bootstrap.sh peers could not install it") from None
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    os.environ["HOME"] = os.environ["IPYTHONDIR"] = os.environ["JUPYTER_RUNTIME_DIR"] = str(folder)
    notebook = nbformat.read(ROOT / "examples" / "cells.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without outputs"
    client = nbclient.NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3", resources={"metadata": {"path": folder}})
    client.execute()
    shown = ["".join(str(out.get("text", "")) + str(out.get("data", "")) for out in cell.outputs)
             for cell in notebook.cells if cell.cell_type == "code"]
    assert "data:image/png" in shown[0] and "300 × 400" in shown[0], shown[0]
    for word in ("<svg", "phantom", "<summary>plan", "stage 1", "<summary>pipeline", "spacing 1 × 1"):
        assert word in shown[0], (word, shown[0])
    assert shown[2].count("<rect") == 11 and "watershed" in shown[2], shown[2].count("<rect")
    assert "stage 1" in shown[1] and "data:image/png" in shown[2], shown[1]
    assert "cells" in shown[3] and "<table>" in shown[3] and "voxels" in shown[3], shown[3]
    assert "watershed" in shown[5] and float(notebook.cells[-1].outputs[0]["data"]["text/plain"]) > 0, shown[-1]


main()
