# SPDX-License-Identifier: Apache-2.0
"""Pickles of public classes name `tq` alone, so that modules may move, and pickles of tq before its packages load."""

import base64
import pickle
import pickletools
import zlib

import numpy as np
import pytest

import tq

# {class: a compressed pickle of it from the earlier, flat package}.
EARLIER = {
    "MinMaxObserver": (
        "eNprYJkazcgABj08JYV6+UnFqUVlqUXFU3r4fDPzfBMr/KEiUyZP0WycUjtFo4clsSKzeIpfD3t8cn5pXglQqVheaW5BpR6QX5Sql1ua"
        "U5KZWFSUWDmlhye+KDU5P6+4pKg0uQRoQg8rWOWUHva8FIiSyVO8GVqnODMmTWmfEjRFw5sRCJnbpmRw9bCmlFQWpII0MZVaTOnsgMgz"
        "9zDaTPHz8/P6DwRgwpuhZEpSp7MEOwN2MAUo3cMSn5uZNyWDM4MHZF0GH9wyIEe4hykNyYIMcWzGc0AM+7AfZlxiBQ7jlOCKGRxAikuT"
        "9AAck4Ej"
    ),
    "MovingAverageObserver": (
        "eNprYJlqwMQABj08JYV6+UnFqUVlqUXFU3pEffPLMvPSHYG8xPRUf6jElMlTNBun1E7R6GFJrMgsnuLXwx6fnF+aVwLUIZZXmltQqQfk"
        "F6Xq5ZbmlGQmFhUlVk7p4YkvSk3OzysuKSpNLgGa0MMKVjmlhz0vBaJk8hRvhtYpzoxJU9qnBE3R8GYEQua2KRlcPawpJZUFqSBNTKUW"
        "Uzo7IPLMPYw2U/z8/Lz+AwGY8GYomZLU6SzBzoAdTAFK97DE52bmTcngzOABWZfBB7cMyBHuYUpDsiBDHJvxHBDDPuyHGZdYgcM4Jbhi"
        "BgewYs5EcEgCg3SKu31L1UP3dSLVPVzxaZlFxSV4nKWEbilcC/FWc8QnJZYkZ6QW4/Z6JmGvMyKFZGmSHgBSr8xn"
    ),
    "HistogramObserver": (
        "eNrt1T9Lw0AYx/H0H9VaRBGqs1NdOjk4OIhdxGIF30BI2mgCNqnJRdpBaAf/FG7r4+vxBbm4Oeq1teLQ4uQgfD+BkMs9+d1xGZ5B/vl1"
        "aE3psrqpRW7ixbdenIjePAkSFV3FTuf866WMZW8od1LVeacXJNLURbsVpaEy1ZUw7XT7NTOOvVonvVaBE8dOX3TZjr1WFCYqTlvKJOjC"
        "tFJ0MWzPSsbSsO6lnnHlUS6k2siYK/cgfkkX2qrf9SYfZdMDGT3N5nM6cyjNZvP0w5jeGpYSd1TfKVqLiZnWebsThOKv+uXJcv7692Jm"
        "sKWzlz8W8LcXxa/Mwt5e5nFOb0nc7nexdTQrdoMwkTNrQ5dsr9eNQm9yaEv3Euz/tpf8u3meRq/ZJnv+GxYkmkXNWVZGx9bAAgAAAAAA"
        "AAAAAAAAAAAAAAAA/0CGIwAAgP4PAADo/wAAgP4PAADo/wAAgP4PAADo/wAAAAAAAAAAAAAA4M+JEjd1a5+Y3rt+"
    ),
    "Calibration": (
        "eNprYJl6mpkBDHr4Sgr1khNzMpOKEksy8/Om9HA7I/EmT9FsnFI7RaOHNS8xN7UYxPRm6GGsmOLN2MNYOsWbqYexcoo3cw9j1ZTSHs78"
        "pOLUorLUIpg6HqDZCLEePt/MPN/ECn+oCMJwlsSKzOIpfj3s8cn5pXklQKVieaW5BZV6QH5Rql5uaU5JZmJRUWLllB6e+KLU5Py84pKi"
        "0uQSoAlAh4FUTulhz0uBKJk8xZuhdYozY9KU9ilBQGcwAiFz25QM8R7WlJLKglSQJqZSiymdHRB5oONtpvj5+Xn9BwIw4c1QMiWp01lC"
        "gAE7mAKU7mGJz83Mm5IhliEJsi5DGm4ZkKPQw5SGZEGGCjbjOYAmJey++WU/zLjEChzG6UMUO9Rs+WIPUlya5M2YwQ8JuwwhvwxhLNrA"
        "XlYm4IkMDbwWMpRtYD0AVmeMV11D6EcGB6jDmIh2GBcFDoOrw++wBa7/4Q5jpkeIKcjEExViCyZ7c0MdVtrDXpyYW5ADzFzA3MSWm1qS"
        "kZ8yBcjIzAOliB6ugtSi5NS8ksyc1CnuDhH/YzS+HuoHZoPMvILSkvi0TJBGjYlTSpP0AH8tQV4="
    ),
    "Rule": (
        "eNprYJmazAABPVwlhXpFqcmZBanFU3pYgkpzUqdMnqLZOKV2ikYPG0QCKJ6ZV2IxpYcjvyC1KLEkv2hKD7uzv19YvJHLlB62ktS8YqCQ"
        "Xw9HcWlSelFiQQaQzZqZl5JaMcWvNEkPAE1fKHs="
    ),
    "RequantizeExplanation": (
        "eNpNjrFOwzAQhhOSpiQMTAy8AV26woYYEFJCJMQLRE5sGkuunbq2gEqIMoJu43iIvg5PwMjKxFIp2OnCTXf/f/fft44/jsNgKMjMYsoe"
        "OkG4RDi6ZQtLpOErduk1SQxXEt9x8oJPeAIRaRosvyPY18pKyuUMIaHK1oIhHGpGRDW3wvBOcKbx6vymLj9/NlvI/qn59enrBYyWLb8z"
        "mP/2fQ/jYWB0iB53WlHbGHxLvjxhCHHLZy2WwR4caNeZandbpJBqNnfg1MUWASTLhgiXUoSQrZhWVae4NN6JG0WZ10fUPHaONXbGGUIk"
        "1D3ma8+Q+ifVbu/Z1tM/zO1zHg=="
    ),
}
X = np.linspace(-1, 2, 7, dtype=np.float32)
SAME = {
    "MinMaxObserver": lambda: tq.MinMaxObserver().update(X),
    "MovingAverageObserver": lambda: tq.MovingAverageObserver().update(X),
    "HistogramObserver": lambda: tq.HistogramObserver().update(X),
    "Calibration": None,
    "Rule": lambda: tq.Rule("int8", operator="CONV_2D"),
    "RequantizeExplanation": lambda: tq.explain_requantize(1000, 0.001),
}


def earlier(name):
    return pickle.loads(zlib.decompress(base64.b64decode(EARLIER[name])))


@pytest.mark.parametrize("name", EARLIER)
def test_pickles_of_the_flat_package_load(name):
    loaded = earlier(name)
    assert type(loaded) is getattr(tq, name)
    if SAME[name]:
        assert repr(loaded) == repr(SAME[name]())
    else:
        assert loaded.samples == 2 and set(loaded.names.values()) == {"x", "u", "y", "z"}


@pytest.mark.parametrize("name", EARLIER)
def test_pickles_name_no_module_but_tq(name):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(earlier(name), protocol)
        texts = {str(item) for _code, item, _at in pickletools.genops(data) if isinstance(item, str)}
        assert not {text for text in texts if text.startswith(("tq.calibration", "tq.quantization", "tq.inspection"))}
        assert type(pickle.loads(data)) is getattr(tq, name)
