"""Ray head with a job server, on its own ports and in its own folder; it ends when standard input is closed.

The argument is the folder; prints its address and that of the job server.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from socket import socket

from ray._private.utils import write_ray_address
from ray.cluster_utils import Cluster


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


if __name__ == "__main__":
    dashboard, agent = _free_ports(2)
    head = {
        "num_cpus": 2,
        "include_dashboard": True,
        "dashboard_port": dashboard,
        "dashboard_agent_listen_port": agent,
        "object_store_memory": 100 * 2**20,
        "temp_dir": sys.argv[1],
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    # As `ray start` does: without it a job joins whichever cluster it finds first on this machine.
    write_ray_address(cluster.address, sys.argv[1])
    print(f"up {cluster.address} http://{cluster.webui_url}", flush=True)
    sys.stdin.read()
    cluster.shutdown()
