"""The package's commands on a real cluster where no operator works: plain pods from the first rank to the last."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from cluster.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.s3 import Store
    from tests.systems.shell import Shell

    WithSecret = Callable[..., Shell]
    Loaded = Callable[[str], str]

PATIENCE = 150.0
GENERATE = "mpiboot generate openmpi hello --namespace $NAMESPACE --image {image} --secret openmpi-secret "
GUIDE = (
    GENERATE + '--workers 4 --gpu 0 --exec "mpiexec -n 4 --hostfile /kubeflow/openmpi/assets/hostfile '
    "--allow-run-as-root --display-map --tag-output --timestamp-output sh -c 'echo hello world'\""
)
# Every rank says where it is; a command with all the quotes that shells and Kubernetes could trip over.
WHERE = """'mpiexec -n 4 sh -c "echo \\"on $(hostname)\\" \\$(hostname) \\$OMPI_COMM_WORLD_SIZE \\$\\$"; exit 7'"""


def pods(shell: Shell) -> dict[str, dict[str, Any]]:
    found = shell.json("kubectl get pods -o json")["items"]
    return {pod["metadata"]["name"]: pod for pod in found}


def phase(shell: Shell, pod: str) -> str:
    return str(pods(shell)[pod]["status"]["phase"])


def ended(shell: Shell, *names: str, limit: float = PATIENCE) -> dict[str, int]:
    """The exit code of each of these pods, once all have ended."""
    def codes() -> dict[str, int]:
        found = {name: pod["status"].get("containerStatuses") or [{}] for name, pod in pods(shell).items()}
        states = {name: found[name][0].get("state", {}).get("terminated") for name in names}
        return {name: state["exitCode"] for name, state in states.items() if state}

    try:
        wait_for(f"the end of {', '.join(names)}", lambda: len(codes()) == len(names), limit)
    except Exception as error:
        raise AssertionError(f"{error}\n{told(shell)}") from error
    return codes()


def told(shell: Shell) -> str:
    return shell("kubectl get pods -o wide; for pod in $(kubectl get pods -o name); do echo \"--- $pod\";"
                 "kubectl logs $pod 2>&1 || true; done")


def logs(shell: Shell, pod: str) -> str:
    """What it printed so far, also of one that has not started."""
    return shell(f"kubectl logs {pod} 2>&1 || true")


def ready(shell: Shell, count: int) -> None:
    """Wait until the launcher says so."""
    said = f"{count} of {count} workers ready"
    wait_for(said, lambda: said in logs(shell, "hello-master"), PATIENCE)


def workers(count: int) -> list[str]:
    return [f"hello-worker-{index}" for index in range(count)]


@pytest.mark.promise("C: generate openmpi takes the documented command line, and its job runs without an operator")
@pytest.mark.promise("C: the pods are NAME-master and NAME-worker-N, labelled app and role")
@pytest.mark.promise("C: kubectl logs -f NAME-master shows the ranks' output")
@pytest.mark.promise("C: the user's own Secret of three files is honoured")
@pytest.mark.promise("C: when the launcher ends the workers end")
def test_the_guides_command(with_secret: WithSecret, loaded: Loaded) -> None:
    shell = with_secret()
    shell(GUIDE.format(image=loaded("openmpi")) + " | kubectl apply -f -")
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(shell).items()}
    assert labels == {"hello-master": {"app": "hello", "role": "master"},
                      **{name: {"app": "hello", "role": "worker"} for name in workers(4)}}
    wait_for("the launcher's start", lambda: phase(shell, "hello-master") != "Pending", PATIENCE)
    log = shell("kubectl logs -f hello-master")
    assert log.count("hello world") == 4, log
    assert log.count("<stdout>: hello world") == 4, log  # --tag-output
    assert Counter(line.split("node: ")[1].split()[0].partition(".")[0] for line in log.splitlines()
                   if "Data for node: " in line) == dict.fromkeys(workers(4), 1), log
    assert ended(shell, "hello-master", *workers(4)) == dict.fromkeys(["hello-master", *workers(4)], 0)
    assert shell("kubectl get jobs,mpijobs -o name") == ""


@pytest.mark.promise("C: the launcher's exit code is the command's")
@pytest.mark.promise("C: when the launcher ends the workers end")
@pytest.mark.promise("C: the user's own Secret of three files is honoured")
@pytest.mark.parametrize(("key_type", "user"), [("ed25519", "1000680000"), ("ecdsa", "0")])
def test_the_command_runs_as_it_was_typed_and_its_exit_code_is_the_launchers(
    with_secret: WithSecret, loaded: Loaded, key_type: str, user: str
) -> None:
    shell = with_secret(key_type)
    more = f"--workers 2 --customResources example.com/none=0 --runAsUser {user} --exec {WHERE}"
    # Slots come with GPUs, of which this cluster has none: two ranks on a worker are asked for by hand.
    generate = f"{GENERATE.format(image=loaded('openmpi'))} {more} | sed 's/slots=1/slots=2/; /example.com.none/d'"
    shell(f"{generate} | sed '/limits:$/d; /resources:$/d' | kubectl apply -f -")
    codes = ended(shell, "hello-master", *workers(2))
    log = shell("kubectl logs hello-master")
    lines = [line.split() for line in log.splitlines() if line.startswith("on ")]
    assert Counter((words[1], words[2]) for words in lines) == {("hello-master", name): 2 for name in workers(2)}, log
    assert {words[3] for words in lines} == {"4"}
    assert len({words[4] for words in lines if words[2] == "hello-worker-0"}) == 2  # $$: each shell's own number
    assert codes == {"hello-master": 7, **dict.fromkeys(workers(2), 0)}


@pytest.mark.promise("C: workers is how many, and without exec the launcher sleeps")
@pytest.mark.promise("C: the MCA settings: no binding, by slot, interfaces left out, long names, LD_LIBRARY_PATH "
                     "forwarded")  # fmt: skip
def test_without_a_command_it_is_a_cluster_to_work_in(with_secret: WithSecret, loaded: Loaded) -> None:
    shell = with_secret()
    generate = f"{GENERATE.format(image=loaded('openmpi'))} --workers 3"
    shell(f"{generate} | kubectl apply -f - && kubectl wait --for=condition=Ready pod --all --timeout=100s")
    ready(shell, 3)
    assert len(pods(shell)) == 4
    printed = shell("kubectl exec hello-master -- mpiexec --display-map sh -c 'echo $(hostname) on; env' 2>&1")
    for name in workers(3):
        assert f"{name} on" in printed
    assert "Mapping policy: BYSLOT" in printed, printed
    assert "Binding policy: NONE" in printed, printed
    for setting in ("OMPI_MCA_btl_tcp_if_exclude=lo,docker0", "OMPI_MCA_hwloc_base_binding_policy=none",
                    "OMPI_MCA_rmaps_base_mapping_policy=slot", "OMPI_MCA_orte_keep_fqdn_hostnames=true"):
        assert printed.count(setting) == 3, printed
    shell(f"{generate} | kubectl delete -f - --wait=false --grace-period=1")
    wait_for("the end of all", lambda: not pods(shell), PATIENCE)


@pytest.mark.promise("C: the MCA settings: no binding, by slot, interfaces left out, long names, LD_LIBRARY_PATH "
                     "forwarded")  # fmt: skip
def test_a_path_of_libraries_that_the_command_sets_reaches_the_ranks(with_secret: WithSecret, loaded: Loaded) -> None:
    shell = with_secret()
    script = """'LD_LIBRARY_PATH=/stubs:$LD_LIBRARY_PATH mpiexec sh -c "echo path \\$LD_LIBRARY_PATH"'"""
    shell(f"{GENERATE.format(image=loaded('openmpi'))} --workers 2 --exec {script} | kubectl apply -f -")
    assert ended(shell, "hello-master") == {"hello-master": 0}
    lines = [line for line in shell("kubectl logs hello-master").splitlines() if line.startswith("path ")]
    assert len(lines) == 2
    assert all("/stubs" in line for line in lines), lines


@pytest.mark.promise("C: initTimeout: the launcher exits 124 when the workers are not there in time")
def test_a_worker_that_never_comes_is_124(with_secret: WithSecret, loaded: Loaded) -> None:
    shell = with_secret()
    generate = f"{GENERATE.format(image=loaded('openmpi'))} --workers 2 --initTimeout 5 --nodeSelector no/such=node"
    shell(f"{generate} | kubectl apply -f -")
    assert ended(shell, "hello-master") == {"hello-master": 124}
    log = shell("kubectl logs hello-master")
    assert "2 of 2 workers not ready" in log
    assert "(limit 5 s, --init-timeout); exit 124" in log
    assert "hello-worker-1.hello" in log


@pytest.mark.promise("C: when the launcher ends the workers end")
def test_a_launcher_that_cannot_say_goodbye_is_missed(with_secret: WithSecret, loaded: Loaded) -> None:
    """Without its last word, as after a kill or a lost node, the workers go by its name in DNS; not before."""
    shell = with_secret()
    generate = f"{GENERATE.format(image=loaded('openmpi'))} --workers 1 -o json"
    made = json.loads(shell(generate))
    master, = (each for each in made["items"] if each["metadata"]["name"] == "hello-master")
    env = master["spec"]["containers"][0]["env"]
    env.remove({"name": "MPIBOOT_END_WORKERS", "value": "1"})
    shell("kubectl apply -f -", given=json.dumps(made))
    ready(shell, 1)
    wait_for("the worker's look", lambda: "hello-master.hello" in logs(shell, "hello-worker-0"), PATIENCE)
    # A new pod with the same name is the same launcher to its workers.
    shell("kubectl delete pod hello-master --grace-period=1")
    shell("kubectl apply -f -", given=json.dumps(master))
    ready(shell, 1)
    assert phase(shell, "hello-worker-0") == "Running"
    shell("kubectl delete pod hello-master --grace-period=1")
    assert ended(shell, "hello-worker-0") == {"hello-worker-0": 0}
    assert "is gone: its name has not resolved for" in shell("kubectl logs hello-worker-0")


@pytest.mark.promise("C: when the launcher ends the workers end")
def test_a_worker_whose_launcher_never_comes_does_not_stay(with_secret: WithSecret, loaded: Loaded) -> None:
    shell = with_secret()
    generate = f"{GENERATE.format(image=loaded('openmpi'))} --workers 1 --initTimeout 6"
    shell(f"{generate} | kubectl apply -l role!=master -f -")
    assert ended(shell, "hello-worker-0") == {"hello-worker-0": 124}
    assert "no launcher hello-master.hello." in shell("kubectl logs hello-worker-0")


@pytest.mark.promise("C: the user's own Secret of three files is honoured")
@pytest.mark.parametrize(("lacking", "pod"), [
    ("id_rsa", "hello-master"), ("id_rsa.pub", "hello-master"), ("authorized_keys", "hello-worker-0")])
def test_a_secret_without_a_key_is_one_line(with_secret: WithSecret, loaded: Loaded, lacking: str, pod: str) -> None:
    shell = with_secret()
    patch = f"""kubectl patch secret openmpi-secret --type json -p '[{{"op": "remove", "path": "/data/{lacking}"}}]'"""
    shell(f"{patch}; {GENERATE.format(image=loaded('openmpi'))} --workers 1 --initTimeout 20 | kubectl apply -f -")
    assert ended(shell, pod) == {pod: 2}
    line, = (line for line in shell(f"kubectl logs {pod}").splitlines() if line.startswith("mpiboot: "))
    assert lacking in line


@pytest.mark.promise("C: S3 data is downloaded before the run and uploaded after it, with the secret's keys")
def test_data_goes_in_before_the_run_and_out_after_it(
    with_secret: WithSecret, image_with_boto3: str, store: Store
) -> None:
    shell = with_secret()
    files = " ".join(f"--from-file={path}" for path in sorted(store.keys.iterdir()))
    shell(f"kubectl create secret generic s3 {files}")
    store.put("input/part/a.txt", "from the store")
    data = "/kubeflow/openmpi/data"
    script = (f"mpiexec sh -c \"mkdir {data}/out; cat {data}/part/a.txt > {data}/out/\\$(hostname); env\" | grep AWS_;"
              f"mkdir {data}/out; echo done > {data}/out/launcher")  # fmt: skip
    generate = (f"{GENERATE.format(image=image_with_boto3)} --workers 2 --s3Secret s3 --exec '{script}' "
                f"--downloadDataFrom s3://bucket/input --downloadDataTo {data} "
                f"--uploadDataFrom {data}/out --uploadDataTo s3://bucket/output")
    shell(f"{generate} | kubectl apply -f -")
    codes = ended(shell, "hello-master", *workers(2))
    assert codes == dict.fromkeys(["hello-master", *workers(2)], 0), told(shell)
    assert "AWS_" not in shell("kubectl logs hello-master")
    base = f"output/{shell.namespace}/hello"
    assert store.get(f"{base}/hello-master/launcher") == "done\n"
    for name in workers(2):
        assert store.get(f"{base}/{name}/{name}") == "from the store"


@pytest.mark.promise("C: S3 data is downloaded before the run and uploaded after it, with the secret's keys")
def test_an_image_without_boto3_says_so_at_once(with_secret: WithSecret, loaded: Loaded) -> None:
    shell = with_secret()
    shell("kubectl create secret generic s3 --from-literal=AWS_ACCESS_KEY_ID=a --from-literal=AWS_SECRET_ACCESS_KEY=b")
    generate = (f"{GENERATE.format(image=loaded('openmpi'))} --workers 1 --s3Secret s3 --exec true "
                "--downloadDataFrom s3://bucket/input --downloadDataTo /kubeflow/openmpi/data")
    shell(f"{generate} | kubectl apply -f -")
    assert ended(shell, "hello-master", "hello-worker-0") == {"hello-master": 74, "hello-worker-0": 74}
    assert "S3 data needs boto3, which is not in this image" in shell("kubectl logs hello-master")
    status = pods(shell)["hello-master"]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert "S3 data needs boto3" in status["message"]


@pytest.mark.promise("C: a GPU image starts on a machine without a GPU")
def test_a_gpu_image_computes_without_a_gpu(with_secret: WithSecret, loaded: Loaded) -> None:
    shell = with_secret()
    script = """'LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:$LD_LIBRARY_PATH mpiexec -n 2 python3 -m mpiboot.demo'"""
    shell(f"{GENERATE.format(image=loaded('openmpi-cuda'))} --workers 2 --exec {script} | kubectl apply -f -")
    assert ended(shell, "hello-master") == {"hello-master": 0}, told(shell)
    assert "pi is 3.14159265" in shell("kubectl logs hello-master")
