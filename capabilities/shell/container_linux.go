package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
	"localpc/capabilities/shell/spawn"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// etcNames are the files of /etc that a container sees. No accounts, keys,
// settings of services, or the machine's identity.
var etcNames = []string{"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "nsswitch.conf",
	"ssl/certs", "ssl/openssl.cnf", "pki/ca-trust/extracted", "pki/tls/certs", "pki/tls/openssl.cnf", "ca-certificates/extracted",
	"mime.types", "magic", "services", "protocols", "os-release", "debian_version", "fonts", "inputrc", "locale.alias", "locale.conf",
	"terminfo", "perl", "python3", "python3.11", "python3.12", "python3.13", "java-17-openjdk", "java-21-openjdk", "xdg/mime"}

// procNames are parts of /proc that tell of, or reach, the whole computer.
// They belong to root, and that is who a container's user is outside when root
// started it.
var procNames = []string{"acpi", "asound", "bus", "fs", "irq", "scsi", "sys", "kcore", "keys", "key-users", "kmsg", "kallsyms",
	"latency_stats", "mtrr", "sched_debug", "slabinfo", "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo", "kpagecount", "kpageflags", "kpagecgroup"}

const passwdInside = "root:x:0:0:root:/:/usr/sbin/nologin\nuser:x:1000:1000:user:" + inside + ":/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
const groupInside = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"
const hostsInside = "127.0.0.1\tlocalhost localpc\n::1\tlocalhost\n"

// container is what bubblewrap is started with.
type container struct {
	args   []string
	texts  []text     // files that are not on this computer
	held   []*os.File // kept open until it has started, and not passed on
	checks []spawn.Check
	hold   []spawn.Held // what one command has mounted beside, in a container for many
	env    map[string]string
}

func (c *container) add(args ...string) { c.args = append(c.args, args...) }

// text is a file's contents; args[at] becomes the descriptor of it.
type text struct {
	at   int
	data []byte
}

// data puts a file with these contents at dest.
func (c *container) data(b []byte, dest string) {
	c.add("--ro-bind-data", "", dest)
	c.texts = append(c.texts, text{len(c.args) - 2, b})
}

// start gives bubblewrap's arguments and the files that it reads, which are its
// descriptors from base on; the caller closes them, with an error too.
func (c *container) start(base int) (args []string, files []*os.File, err error) {
	args = slices.Clone(c.args)
	for i, t := range c.texts {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, files, err
		}
		files = append(files, r)
		// A pipe holds 64 KiB, so that this does not wait for a reader.
		_, err = w.Write(t.data[:min(len(t.data), 60<<10)])
		w.Close()
		if err != nil {
			return nil, files, err
		}
		args[t.at] = itoa(base + i)
	}
	return args, files, nil
}

// key tells one container from another: by what is mounted, which folders those
// are, and the contents of its own files.
func (c *container) key() string {
	b, err := json.Marshal([]any{c.args, c.texts, c.checks})
	if err != nil {
		panic(err)
	}
	for _, t := range c.texts {
		b = append(append(b, t.data...), 0)
	}
	return string(b)
}

// bind mounts a directory of the session. The path could be another directory
// by the time bubblewrap looks it up, so process 1 checks what is mounted,
// and nothing runs on a mismatch; dir, kept open, keeps its number from being
// used again.
func (c *container) bind(how string, dir *os.File, dest string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		dir.Close()
		return err
	}
	c.held = append(c.held, dir)
	c.add(how, dir.Name(), dest)
	c.checks = append(c.checks, spawn.Check{Path: dest, Dev: st.Dev, Ino: st.Ino})
	return nil
}

func (c *container) close() {
	for _, f := range c.held {
		f.Close()
	}
}

// isolate is what every container has, the trial one too: namespaces of its
// own, an ordinary user, no rights, the system's programs read-only.
func (c *container) isolate() { c.add(isolation()...) }

// What the system has is looked up once: it takes longer than much else of a
// start. See also isolate.
var (
	isolation = sync.OnceValue(func() []string {
		c := &container{}
		c.lookUpIsolation()
		return c.args
	})
	etcHere = sync.OnceValue(func() []string {
		return slices.DeleteFunc(slices.Clone(etcNames), func(n string) bool {
			_, err := os.Stat("/etc/" + n)
			return err != nil
		})
	})
)

func (c *container) lookUpIsolation() {
	// Not --die-with-parent: it means the thread that started bubblewrap, and
	// a Go program's threads come and go. The control socket does it instead.
	c.add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
		"--uid", "1000", "--gid", "1000", "--hostname", "localpc", "--cap-drop", "ALL", "--new-session", "--as-pid-1",
		"--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev")
	for _, d := range []string{"bin", "sbin", "lib", "lib64", "lib32", "libx32"} {
		fi, err := os.Lstat("/" + d)
		switch {
		case err != nil:
		case fi.Mode()&os.ModeSymlink != 0:
			c.add("--symlink", "usr/"+d, "/"+d)
		default:
			c.add("--ro-bind", "/"+d, "/"+d)
		}
	}
	if os.Geteuid() == 0 {
		c.add("--dir", spawn.Cover) // for openBox, and empty for the others
	}
	for _, n := range procNames {
		if os.Geteuid() != 0 {
			break
		}
		fi, err := os.Lstat("/proc/" + n)
		switch {
		case err != nil:
		case fi.IsDir():
			c.add("--ro-bind-try", "/proc/"+n, "/proc/"+n)
		default:
			c.add("--ro-bind", os.DevNull, "/proc/"+n)
		}
	}
}

// newContainer puts together what the command of pl sees.
func (s *Shell) newContainer(pl *plan, loginPath string) (_ *container, err error) {
	c := &container{args: slices.Clone(s.extra)}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	sess := pl.session
	c.isolate()
	for _, n := range etcHere() {
		c.add("--ro-bind-try", "/etc/"+n, "/etc/"+n)
	}
	c.data([]byte(passwdInside), "/etc/passwd")
	c.data([]byte(groupInside), "/etc/group")
	c.data([]byte(hostsInside), "/etc/hosts")
	c.data(gitConfig(s.o.Home), gitInside)
	if s.o.Connect != nil {
		c.data([]byte(sshConfig), "/etc/ssh/ssh_config")
	}
	c.add("--dir", "/run", "--dir", "/home", "--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--symlink", "/run", "/var/run")
	c.add("--ro-bind", s.o.Spawn, spawnInside)

	folder, err := openDir(unix.AT_FDCWD, sess.Folder, sess.Folder)
	if err != nil {
		return nil, folderGone(err)
	}
	how := "--bind"
	if sess.Mode == consent.ModeLook {
		how = "--ro-bind"
	}
	if err := c.bind(how, folder, inside); err != nil {
		return nil, err
	}
	if how == "--bind" {
		if err := c.protectGit(folder, inside, s.keeps); err != nil {
			return nil, err
		}
	}
	for _, own := range []mount{{sess.Tmp, "/tmp"}, {sess.Cache, cacheInside}} {
		f, err := openDir(unix.AT_FDCWD, own.from, own.from)
		if err != nil {
			return nil, wire.Wrap(err, wire.CodeInternal, "The session's own directory for temporary files is missing on this computer.")
		}
		if err := c.bind("--bind", f, own.to); err != nil {
			return nil, err
		}
	}
	mounts, search, env := toolchains(s.o.Home, loginPath)
	visible := !conflicts(sess.Folder, mounts)
	for _, m := range mounts {
		c.add("--ro-bind-try", m.from, m.to)
	}
	if visible {
		// The folder's own name works too.
		c.add("--symlink", inside, sess.Folder)
	}
	c.add("--remount-ro", "/")

	c.env = map[string]string{
		"HOME": inside, "USER": "user", "LOGNAME": "user", "SHELL": "/bin/bash", "LANG": "C.UTF-8", "TMPDIR": "/tmp",
		"PATH":              strings.Join(append(search, systemPath), ":"),
		"XDG_CACHE_HOME":    cacheInside,
		"GOPATH":            cacheInside + "/go",
		"CARGO_HOME":        cacheInside + "/cargo",
		"npm_config_cache":  cacheInside + "/npm",
		"GIT_CONFIG_GLOBAL": gitInside,
	}
	maps.Copy(c.env, env)
	if s.o.Connect != nil {
		maps.Copy(c.env, proxyEnv)
	}
	return c, nil
}

// protectGit makes existing hooks read-only. .git becomes a mount of its own,
// because a directory above a mount can be moved away, and a mount can't. In a
// container for many that is each command's own: hooks that have come since it
// was entered are held too, and what else runs in it goes on in one network with
// the commands to come.
func (c *container) protectGit(folder *os.File, dest string, many bool) error {
	git, err := openDir(int(folder.Fd()), ".git", filepath.Join(folder.Name(), ".git"))
	if err != nil {
		return nil // none, or a file that points elsewhere
	}
	hooks, err := openDir(int(git.Fd()), "hooks", filepath.Join(git.Name(), "hooks"))
	if err != nil {
		git.Close()
		return nil
	}
	if many {
		c.held = append(c.held, git, hooks)
		c.hold = []spawn.Held{{Path: dest + "/.git"}, {Path: dest + "/.git/hooks", ReadOnly: true}}
		return nil
	}
	if err := c.bind("--bind", git, dest+"/.git"); err != nil {
		hooks.Close()
		return err
	}
	return c.bind("--ro-bind", hooks, dest+"/.git/hooks")
}

// openDir opens a directory that is not a link, without reading it.
func openDir(at int, name, full string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), full), nil
}

// folderID makes sure that the session's folder is still the one that was
// chosen.
func folderID(sess *capabilities.Session) (capabilities.FileID, error) {
	f, err := openDir(unix.AT_FDCWD, sess.Folder, sess.Folder)
	if err != nil {
		return capabilities.FileID{}, folderGone(err)
	}
	defer f.Close()
	id, err := fileID(int(f.Fd()), "")
	if err != nil || !id.Same(sess.FolderID) {
		return capabilities.FileID{}, folderGone(err)
	}
	return id, nil
}

func fileID(fd int, name string) (capabilities.FileID, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, name, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return capabilities.FileID{}, err
	}
	return capabilities.StatxID(&st), nil
}

// noNesting keeps commands from making namespaces of their own, in which they
// would have rights over more of the kernel. Older bubblewraps lack it.
const noNesting = "--disable-userns"

// tryContainer starts one, and says why it can't be had. It sets extra.
func (s *Shell) tryContainer(ctx context.Context) string {
	if s.o.Bwrap == "" {
		return "Containment needs bubblewrap, which is not installed. Install it with: sudo apt install bubblewrap"
	}
	s.extra = []string{noNesting}
	why := s.tryOnce(ctx)
	if why != "" {
		s.extra = nil
		why = s.tryOnce(ctx)
	}
	if why == "" {
		if err := s.tryBox(ctx); err == nil {
			s.keeps = true
		} else if s.life.Err() == nil {
			s.o.Log.Warn("Each command has a container of its own here", "err", err)
		}
	}
	return why
}

func (s *Shell) tryOnce(ctx context.Context) string {
	c := &container{args: slices.Clone(s.extra)}
	c.isolate()
	cmd := exec.CommandContext(ctx, s.o.Bwrap, append(c.args, "--", "/usr/bin/true")...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	if err == nil {
		return ""
	}
	switch {
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "This system's AppArmor forbids containers to ordinary programs. Allow it with: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case setting("kernel/unprivileged_userns_clone") == "0":
		return "This system forbids containers to ordinary users. Allow it with: sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case setting("user/max_user_namespaces") == "0":
		return "This system allows no user namespaces. Allow them with: sudo sysctl -w user.max_user_namespaces=10000"
	case errors.Is(err, os.ErrNotExist):
		return "Containment needs bubblewrap, which is not at " + s.o.Bwrap + ". Install it with: sudo apt install bubblewrap"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
	if line == "" {
		line = err.Error()
	}
	return "bubblewrap could not start a container here (" + clip(consent.Visible(line, false), 200) + ")."
}

func setting(name string) string {
	b, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(b))
}
