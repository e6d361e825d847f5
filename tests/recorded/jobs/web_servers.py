"""Jobs of web servers and proxies: gunicorn, uvicorn, nginx, haproxy, PHP, node, celery."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from job import Job, Truth
from jobs.database_servers import REDIS_HERE, redis
from stage import PYTHON, Stage

PYTHON_HERE = {PYTHON: "python3"}
GUNICORN_HERE = {**PYTHON_HERE, "/usr/bin/gunicorn": "gunicorn"}


def service(stage: Stage) -> tuple[int, int]:
    """A slow one. Its port and process."""
    port = stage.port()
    return port, stage.python("slow_service.py", port)


def gunicorn(
    page: str, *options: object, workers: int, clients: int = 3, quota: int = 0
) -> Callable[[Stage], Sequence[int]]:
    """Workers that answer clients, and the slow service that some pages ask."""

    def start(stage: Stage) -> Sequence[int]:
        prices, upstream = service(stage)
        port = stage.port()
        stage.program("shop.py")
        groups = [stage.group("cpu", cfs_period_us=50_000, cfs_quota_us=quota)] if quota else []
        command = ["/usr/bin/gunicorn", *options, "-w", workers, "-b", f"127.0.0.1:{port}", "shop:application"]
        server = stage.start(*command, groups=groups, environment={"PRICES": str(prices)})
        stage.listening(port)
        stage.python("browse.py", port, clients, page)
        traced = stage.tree(server.pid, least=1 + workers)
        return [*traced, upstream] if page == "/price" else traced

    return start


def idle_gunicorn(stage: Stage) -> Sequence[int]:
    port = stage.port()
    stage.program("shop.py")
    server = stage.start("/usr/bin/gunicorn", "-w", "3", "-b", f"127.0.0.1:{port}", "shop:application")
    stage.listening(port)
    return stage.tree(server.pid, least=4)


def uvicorn(stage: Stage) -> Sequence[int]:
    prices, upstream = service(stage)
    port = stage.port()
    stage.program("shop_async.py")
    command = [PYTHON, "-m", "uvicorn", "--log-level", "warning", "--port", port, "shop_async:application"]
    server = stage.start(*command, environment={"PRICES": str(prices)})
    stage.listening(port)
    stage.python("browse.py", port, 3, "/")
    return [server.pid, upstream]


def configured(stage: Stage, name: str, port: int, upstream: int) -> str:
    text = (stage.folder / stage.program(name)).read_text()
    stage.write(name, text.replace("UPSTREAM", str(upstream)).replace("PORT", str(port)))
    return name


def nginx_server(stage: Stage, port: int, upstream: int) -> Sequence[int]:
    """Processes of the server."""
    configuration = configured(stage, "nginx.conf", port, upstream)
    server = stage.start("nginx", "-p", stage.folder, "-e", "stderr", "-c", configuration)
    stage.listening(port)
    return stage.tree(server.pid, least=2)


def nginx(stage: Stage) -> Sequence[int]:
    prices, upstream = service(stage)
    port = stage.port()
    server = nginx_server(stage, port, prices)
    client = stage.python("browse.py", port, 2, "/")
    return [*server, upstream, client]


def proxy_alone(stage: Stage) -> Sequence[int]:
    return nginx(stage)[1:2]


def rate_limit(stage: Stage) -> Sequence[int]:
    port = stage.port()
    server = nginx_server(stage, port, upstream=1)
    (stage.folder / "files").mkdir()
    (stage.folder / "files" / "model.bin").write_bytes(bytes(20_000_000))
    client = stage.start("curl", "-s", "-o", "model.bin", f"http://127.0.0.1:{port}/files/model.bin")
    stage.until((stage.folder / "model.bin").exists, "curl has received something")
    return [client.pid, *server]


def haproxy(stage: Stage) -> Sequence[int]:
    prices, upstream = service(stage)
    port = stage.port()
    server = stage.start("haproxy", "-db", "-f", configured(stage, "haproxy.cfg", port, prices))
    stage.listening(port)
    client = stage.python("browse.py", port, 2, "/")
    return [*stage.tree(server.pid), upstream, client]


def php_session(stage: Stage) -> Sequence[int]:
    port = stage.port()
    (stage.folder / "sessions").mkdir()
    stage.program("session.php")
    server = stage.start("php", "-S", f"127.0.0.1:{port}", "-t", ".", environment={"PHP_CLI_SERVER_WORKERS": "3"})
    stage.listening(port)
    stage.python("browse.py", port, 3, "/session.php", "PHPSESSID=abcdef0123456789abcdef0123")
    return stage.tree(server.pid, least=3)


def orders(stage: Stage) -> Sequence[int]:
    port = stage.port()
    server = stage.start("node", "--perf-basic-prof", stage.program("orders.js"), port, ready="ready")
    client = stage.python("browse.py", port, 2, "/")
    return [server.pid, client]


def celery(stage: Stage) -> Sequence[int]:
    _, broker = redis(stage)
    prices, upstream = service(stage)
    stage.program("tasks.py")
    environment = {"BROKER": str(broker), "PRICES": str(prices)}
    command = [PYTHON, "-m", "celery", "-A", "tasks", "worker", "-c", "2", "-l", "INFO"]
    worker = stage.start(*command, "--without-gossip", "--without-mingle", ready="ready.", environment=environment)
    stage.run(PYTHON, stage.program("send_tasks.py"), environment=environment)
    return [*stage.tree(worker.pid, least=3), upstream]


SLOW_UPSTREAM = ("look_up_price|slow_service",)

JOBS = (
    Job(
        "gunicorn_slow_service",
        Truth(
            ("peer", "network"),
            ("gunicorn", "2 main threads"),
            ("fetch_price", *SLOW_UPSTREAM),
            "both workers wait for the answers of a slow service",
        ),
        gunicorn("/price", workers=2),
        GUNICORN_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "gunicorn_lock",
        Truth(
            ("lock",),
            ("gunicorn", "threads"),
            ("refresh_cache", "sleep"),
            "the threads of a worker wait for a lock, whose holder sleeps",
        ),
        gunicorn("/cache", "--threads", 4, workers=1, clients=4),
        GUNICORN_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "gunicorn_quota",
        Truth(("quota",), ("gunicorn",), ("quota",), "a control group's quota stops the workers"),
        gunicorn("/sign", workers=2, quota=10_000),
        GUNICORN_HERE,
        commands=("offcpu", "wall"),
    ),
    Job(
        "gunicorn_idle",
        Truth(("idle",), ("gunicorn",), ("idle|wait.* for work|nothing",), "a server without a client"),
        idle_gunicorn,
        GUNICORN_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "uvicorn_blocking_call",
        Truth(
            ("peer", "network"),
            ("main thread", "uvicorn"),
            ("fetch_price", *SLOW_UPSTREAM),
            "the event loop itself waits for the answers of a slow service",
        ),
        uvicorn,
        PYTHON_HERE,
        {"uvicorn": "python3-uvicorn"},
    ),
    Job(
        "nginx_slow_upstream",
        Truth(
            ("peer",),
            ("nginx|browse",),
            SLOW_UPSTREAM,
            "a proxy, and so its clients, wait for a slow upstream",
        ),
        nginx,
        {**PYTHON_HERE, "nginx": "nginx-light"},
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "nginx_alone",
        Truth(
            ("peer",),
            ("nginx",),
            ("slow_service|python3",),
            "a proxy waits for a slow upstream; only its worker is traced",
        ),
        proxy_alone,
        {**PYTHON_HERE, "nginx": "nginx-light"},
        commands=("wakeup",),
    ),
    Job(
        "nginx_rate_limit",
        Truth(
            ("peer", "network"),
            ("curl",),
            ("nginx",),
            "a client waits for data that nginx sends at a limited rate",
        ),
        rate_limit,
        {"curl": "curl", "nginx": "nginx-light"},
        commands=("wakeup", "offcpu"),
    ),
    Job(
        "haproxy_slow_upstream",
        Truth(
            ("peer",),
            ("haproxy|browse",),
            SLOW_UPSTREAM,
            "a proxy, and so its clients, wait for a slow upstream",
        ),
        haproxy,
        {**PYTHON_HERE, "haproxy": "haproxy"},
    ),
    Job(
        "php_session",
        Truth(
            ("file-lock",),
            ("php",),
            ("flock|session", "usleep|sleep"),
            "pages of one session wait for the lock of its file, whose holder sleeps",
        ),
        php_session,
        {**PYTHON_HERE, "php": "php-cli"},
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "node_sort",
        Truth(
            ("cpu", "peer"),
            ("node orders.js",),
            ("sortOrders",),
            "a server computes each answer on the thread of its event loop; the clients wait",
        ),
        orders,
        {**PYTHON_HERE, "node": "nodejs"},
        commands=("wall",),
    ),
    Job(
        "celery_slow_service",
        Truth(
            ("peer", "network"),
            ("celery", "2 main threads"),
            ("charge_card", *SLOW_UPSTREAM),
            "the workers of a queue wait for the answers of a slow service",
        ),
        celery,
        {**PYTHON_HERE, **REDIS_HERE},
        {"celery": "python3-celery", "redis": "python3-redis"},
    ),
)
