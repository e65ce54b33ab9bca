//go:build linux

package files

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// The roles of this test program when it runs as a process of its own.
const (
	childRole = "LOCALPC_FILES_TEST_ROLE"
	childDir  = "LOCALPC_FILES_TEST_DIR"

	roleWriter = "writer" // writes one file again and again, until it is killed
	roleLimit  = "limit"  // writes with a limit on the size of files
	roleWatch  = "watch"  // watches with hardly any watches left
)

// child makes this test program, in a role, without starting it.
func child(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir)
	return cmd
}

// reopen is the rig in dir as another process finds it.
func reopen(t *testing.T, dir string) *rig {
	s := &capabilities.Session{ID: "again", Folder: filepath.Join(dir, "folder"), Tmp: filepath.Join(dir, "tmp"), Mode: consent.ModeWork, Made: capabilities.NewMade(0)}
	fi, err := os.Stat(s.Folder)
	must(t, err)
	s.FolderID, _ = capabilities.FileIDOf(fi)
	r := &rig{TB: t, s: s, e: New(Options{Journal: filepath.Join(dir, "journal")})}
	t.Cleanup(func() { r.e.Close() })
	return r
}

// TestChild does nothing by itself: other tests run it as a process.
func TestChild(t *testing.T) {
	role, dir := os.Getenv(childRole), os.Getenv(childDir)
	switch role {
	case roleWriter:
		r := reopen(t, dir)
		calls := []capabilities.Call{r.writeCall("f", killText("A")), r.writeCall("f", killText("B"))}
		fmt.Println("ready")
		for i := 0; ; i++ {
			_, _, err := r.do(calls[i%2])
			must(t, err)
		}
	case roleWatch:
		watchLimits(t, reopen(t, dir))
	case roleLimit:
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: adoptFrom / 2, Max: adoptFrom / 2}))
		r := reopen(t, dir)
		spool, err := os.Open(filepath.Join(dir, "spool"))
		must(t, err)
		fi, err := spool.Stat()
		must(t, err)
		for _, name := range []string{"f", "linked", "new/deep/g"} {
			c := r.call(wire.TypeFileWrite, &wire.FileWrite{SessionID: r.s.ID, Path: name})
			c.Upload = &capabilities.Upload{Path: spool.Name(), Size: fi.Size(), SHA256: os.Getenv("SPOOL_SHA256")}
			d, err := r.describe(c)
			must(t, err)
			_, err = r.e.Run(context.Background(), c, capabilitytest.Grant(t, r.s, "files", d), &capabilitytest.Output{})
			fmt.Println("result", name, wire.CodeOf(err), err)
		}
	}
}

// killText is 4 MiB that say whether they are whole.
func killText(letter string) string { return strings.Repeat(letter, 4<<20) }

// An ordinary user meets what the system forbids; root does not. Started by
// root, the whole suite runs again as somebody else.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		forbidden(t)
		return
	}
	const nobody = 65534
	dir := elsewhere(t)
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o755))
	must(t, os.Chown(filepath.Join(dir, "tmp"), nobody, nobody))
	program := filepath.Join(dir, "files.test")
	copyFile(t, os.Args[0], program)
	cmd := exec.Command(program, "-test.v", "-test.skip=Swapped|Killed|VeryMany|TenGiB")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"), "HOME="+filepath.Join(dir, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestAsAnOrdinaryUser") {
		t.Errorf("as uid %d: %v\n%s", nobody, err, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(out, in)
	must(t, err)
	must(t, out.Close())
}

// forbidden checks what the system refuses to an ordinary user.
func forbidden(t *testing.T) {
	r := newRig(t)
	r.put("closed/f", "x")
	r.put("unreadable", "x")
	r.put("readonly", "x")
	r.put("tight/f", "old")
	must(t, os.Chmod(r.at("unreadable"), 0))
	must(t, os.Chmod(r.at("readonly"), 0o444))
	must(t, os.Chmod(r.at("closed"), 0))
	must(t, os.Chmod(r.at("tight"), 0o555))
	// So that the test's own directory can go, however it ends.
	t.Cleanup(func() {
		for _, dir := range []string{"closed", "tight", "tree/locked"} {
			_ = os.Chmod(r.at(dir), 0o755)
		}
	})
	for what, err := range map[string]error{
		"read an unreadable file":           second(r.read("unreadable")),
		"read in a closed folder":           second(r.read("closed/f")),
		"stat in a closed folder":           second(r.stat("closed/f")),
		"list a closed folder":              second(r.list("closed", 1)),
		"write a read-only file":            second(r.write("readonly", "y")),
		"make a file in a closed folder":    second(r.write("closed/g", "y")),
		"make a file in a read-only folder": second(r.write("tight/g", "y")),
		"make a folder there":               second(r.mkdir("tight/d/e")),
		"delete in a read-only folder":      r.delete("tight/f"),
		"move out of a read-only folder":    second(r.move("tight/f", "f")),
		"move into a read-only folder":      second(r.move("readonly", "tight/x")),
	} {
		if wire.CodeOf(err) != wire.CodeForbidden {
			t.Errorf("%s: %v, want %s", what, err, wire.CodeForbidden)
		}
	}
	// The folder takes no new file, but the file itself may be written.
	if _, err := r.write("tight/f", "new"); err != nil || r.text("tight/f") != "new" {
		t.Errorf("a writable file in a read-only folder: %v, %q", err, r.text("tight/f"))
	}
	// What a listing may not look into is still listed.
	list, err := r.list("", 5)
	if err != nil || len(list) != 5 {
		t.Errorf("%d entries, %v", len(list), err)
	}
	// A tree with a folder that cannot be looked into is not counted as known.
	r.put("tree/locked/f", "x")
	must(t, os.Chmod(r.at("tree/locked"), 0))
	d, err := r.describe(r.pathCall(wire.TypeFileDelete, "tree"))
	must(t, err)
	if d.Effects[0].Own || !strings.Contains(d.Effects[0].Text, "more than") {
		t.Errorf("%+v", d.Effects)
	}
	wantCode(t, r.delete("tree"), wire.CodeForbidden)
	must(t, os.Mkdir(r.at("empty"), 0))
	must(t, r.delete("empty"))
	for _, dir := range []string{"closed", "tight", "tree/locked"} {
		must(t, os.Chmod(r.at(dir), 0o755))
	}
	if r.text("tree/locked/f") != "x" {
		t.Error("what could not be looked into was deleted")
	}
	r.noTemps()
}

func second[T any](_ T, err error) error { return err }
