"""What a container runtime and a kubelet do, with namespaces alone: an image's root that is read-only, volumes, no privileges,
a network of its own, and a process that is number 1."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import support

CMAKE = os.environ.get("SLUICE_CMAKE", "cmake")
# The loopback of a new network is down.
RAISE_LOOPBACK = ("import fcntl,socket,struct;s=socket.socket();"
                  "fcntl.ioctl(s,0x8914,struct.pack('16sH14s',b'lo',1,b''));")
PAUSE = RAISE_LOOPBACK + "print('up',flush=True);import sys;sys.stdin.read()"
# $1 is the root to be, $2 what /usr/local holds, $3 what /etc holds, $4 the user; then SOURCE TARGET ro|rw for each volume up to
# "--", then the working folder and the words of env(1).
ENTER = r"""
set -e
root=$1 local=$2 etc=$3 user=$4
shift 4
bind() { mkdir -p "$root$2"; mount --bind "$1" "$root$2"; [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"; }
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$root"
for link in /bin /sbin /lib /lib64; do [ ! -L $link ] || cp -P $link "$root$link"; done
bind /usr /usr ro
bind "$local" /usr/local ro
cp -r "$etc" "$root/etc"
mkdir -p "$root/proc" "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
for node in null zero random urandom; do touch "$root/dev/$node"; mount --bind /dev/$node "$root/dev/$node"; done
while [ "$1" != -- ]; do bind "$1" "$2" "$3"; shift 3; done
mount -o remount,ro "$root"
folder=$2
shift 2
exec chroot "$root" /usr/bin/env -i -C "$folder" "$@"
"""


def runs_here():
    """None, or why containers cannot be made here."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
        return "SKIPPED: needs root, unshare and setpriv"
    probe = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False)
    return None if probe.returncode == 0 else "SKIPPED: namespaces are not allowed here"


class Image:
    """What the Dockerfile makes, of this build, with this machine's libraries in the place of the base image's."""

    def __init__(self):
        with open(os.path.join(support.SOURCE, "Dockerfile"), encoding="utf-8") as file:
            self.dockerfile = file.read().replace("\\\n", " ")
        self.folder = tempfile.mkdtemp(prefix="sluice-image-")
        self.local = os.path.join(self.folder, "local")
        self.etc = os.path.join(self.folder, "etc")
        for component in re.findall(r"cmake --install build/release --prefix /out .*?--component (\w+)", self.dockerfile):
            done = subprocess.run([CMAKE, "--install", support.BUILD, "--prefix", self.local, "--component", component],
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)
        self.user = int(self.last("USER"))
        os.makedirs(os.path.join(self.etc, "sluice", "jobs.d"))
        os.makedirs(os.path.join(self.etc, "sluice", "plugins"))
        source = re.search(r"^COPY (\S+) /etc/sluice/host\.toml$", self.dockerfile, re.M).group(1)
        shutil.copy(os.path.join(support.SOURCE, source), os.path.join(self.etc, "sluice", "host.toml"))
        self.write_etc("passwd", f"root:x:0:0::/:/bin/sh\nsluice:x:{self.user}:{self.user}::/var/lib/sluice:/usr/sbin/nologin\n")
        self.write_etc("group", f"root:x:0:\nsluice:x:{self.user}:\n")
        self.write_etc("hosts", "127.0.0.1 localhost\n")

    def write_etc(self, name, text):
        with open(os.path.join(self.etc, name), "w", encoding="utf-8") as file:
            file.write(text)

    def last(self, word):
        """What the last such statement says."""
        return re.findall(rf"^{word} +(.*)$", self.dockerfile, re.M)[-1].strip()

    def words(self, statement):
        return json.loads(self.last(statement))

    @property
    def health_check(self):
        return json.loads(self.last("HEALTHCHECK").partition("CMD ")[2])

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Network:
    """A network with nothing in it but a loopback, which containers share as those of a pod do."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "/usr/bin/python3", "-c", PAUSE], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "up\n":
            raise AssertionError("no network")

    def enter(self, *words):
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", *words]

    def run(self, *words, **options):
        return subprocess.run(self.enter(*words), capture_output=True, text=True, timeout=support.PATIENCE, check=False, **options)

    def get(self, url):
        """Status and text as a probe from outside the container gets them; (0, "") when nobody listens."""
        code = ("import urllib.request as u,urllib.error as e,sys\n"
                "try:\n a=u.urlopen(sys.argv[1],timeout=5);print(a.status);print(a.read().decode())\n"
                "except e.HTTPError as a:\n print(a.code);print(a.read().decode())\n"
                "except OSError:\n print(0)")
        done = self.run("/usr/bin/python3", "-c", code, url)
        status, _, text = done.stdout.partition("\n")
        return int(status or 0), text

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Container:
    """A running one. `volumes` are (source, target, "ro" or "rw")."""

    def __init__(self, image, network, volumes, words, environment, log):
        self.root = tempfile.mkdtemp(prefix="sluice-root-")
        self.image, self.network, self.log_path = image, network, log
        self.environment = [f"{name}={value}" for name, value in
                            dict({"PATH": "/usr/local/bin:/usr/bin:/bin", "HOSTNAME": "box"}, **environment).items()]
        self.drop = ["/usr/bin/setpriv", f"--reuid={image.user}", f"--regid={image.user}", "--clear-groups", "--no-new-privs",
                     "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
        flat = [word for volume in volumes for word in volume]
        with open(log, "a", encoding="utf-8") as sink:
            self.process = subprocess.Popen(
                network.enter("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "bash", "-c", ENTER, "enter",
                              self.root, image.local, image.etc, str(image.user), *flat, "--", image.last("WORKDIR"),
                              *self.environment, *self.drop, *words),
                stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def pid(self):
        """Of its process 1, as the machine counts."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
            return int(file.read().split()[0])

    def exec(self, *words, data=None):
        """As `docker exec` and `kubectl exec` do."""
        return subprocess.run(["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--ipc", "--uts", "--root", "--",
                               "/usr/bin/env", "-i", "-C", self.image.last("WORKDIR"), *self.environment, *self.drop, *words],
                              input=data, capture_output=True, text=True, timeout=support.PATIENCE, check=False)

    def stop(self, signal):
        """Its exit code."""
        os.kill(self.pid, signal)
        return self.wait()

    def wait(self):
        try:
            return self.process.wait(support.PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("the container does not end:\n" + self.log()) from None

    def remove(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.rmdir(self.root)


class ConfigMap:
    """A volume as the kubelet lays one out: files behind a link that is exchanged for all of them at once."""

    def __init__(self, folder, items):
        self.folder, self.items, self.generation = folder, items, 0
        os.mkdir(folder)
        os.chmod(folder, 0o2777)

    def write(self, entries):
        """`entries`: key to text; where each lies says the volume's `items`."""
        self.generation += 1
        name = f"..{self.generation}"
        new = os.path.join(self.folder, name)
        for item in self.items:
            path = os.path.join(new, item["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(entries[item["key"]])
        os.symlink(name, os.path.join(self.folder, "..data_tmp"))
        os.rename(os.path.join(self.folder, "..data_tmp"), os.path.join(self.folder, "..data"))
        for first in {item["path"].split("/")[0] for item in self.items}:
            if not os.path.lexists(os.path.join(self.folder, first)):
                os.symlink(f"..data/{first}", os.path.join(self.folder, first))
        shutil.rmtree(os.path.join(self.folder, f"..{self.generation - 1}"), ignore_errors=True)


def empty_dir(folder, group):
    """An emptyDir of a pod with fsGroup: everybody's."""
    os.mkdir(folder)
    os.chown(folder, 0, group)
    os.chmod(folder, 0o2777)
    return folder
