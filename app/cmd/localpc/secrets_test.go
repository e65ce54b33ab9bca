//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/login"
	"localpc/app/snapshot"
)

const filePassphrase = "korrekt pferd batterie"

// headless is localpc where nothing shows windows and nobody types.
func headless(t testing.TB, o apptest.Options) *program {
	t.Helper()
	o.NoTray, o.NoNotifications = true, true
	d := apptest.New(t, o)
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(p.data, "localpc.log")); t.Failed() && err == nil {
			t.Logf("log of localpc:\n%s", b)
		}
	})
	return p
}

// begin starts it without a display; the output is waited for.
func (p *program) begin(output string, args ...string) {
	p.t.Helper()
	p.p = p.d.StartCmd("localpc", p.without("DISPLAY=", append([]string{"run", "--data", p.data, "--embedded-hub", p.addr}, args...)...))
	p.d.WaitOutput(p.p, 30*time.Second, output)
}

// ends runs it to its end, which is a failure that says these words.
func (p *program) ends(words string, args ...string) {
	p.t.Helper()
	q := p.d.StartCmd("localpc", p.without("DISPLAY=", append([]string{"run", "--data", p.data, "--embedded-hub", p.addr}, args...)...))
	if code := q.ExitCode(30 * time.Second); code != exitFail || !strings.Contains(q.Output(), words) {
		p.t.Errorf("it ended with %d and says %q, want %q", code, q.Output(), words)
	}
}

func (p *program) quit() {
	p.t.Helper()
	p.must("quit")
	if code := p.p.ExitCode(20 * time.Second); code != 0 {
		p.t.Errorf("quit ended with %d", code)
	}
}

// fails is a command that has to fail with these words.
func (p *program) fails(words string, args ...string) {
	p.t.Helper()
	if out, err := p.cli(args...); err == nil || !strings.Contains(err.Error(), words) {
		p.t.Errorf("localpc %s: %v %q, want %q", strings.Join(args, " "), err, out, words)
	}
}

// says is a command that has to work, and prints these words.
func (p *program) says(words string, args ...string) {
	p.t.Helper()
	if out := p.must(args...); !strings.Contains(out, words) {
		p.t.Errorf("localpc %s says %q, want %q", strings.Join(args, " "), out, words)
	}
}

// passphraseFile makes one that is the person's.
func (p *program) passphraseFile(name, passphrase string, mode os.FileMode) string {
	p.t.Helper()
	path := filepath.Join(p.d.Home, name)
	if err := os.WriteFile(path, []byte(passphrase+"\n"), mode); err != nil {
		p.t.Fatal(err)
	}
	p.d.Give(path)
	return path
}

func fileOf(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A server without a display, a bus and a keychain is paired by code, and after
// that no start needs a person, not even one after kill -9 or a power cut.
func TestPairByCodeWithoutAKeychain(t *testing.T) {
	t.Parallel()
	p := headless(t, apptest.Options{NoBus: true, Ordinary: true})
	d := p.d
	vault := filepath.Join(p.data, "secrets.age")
	folder := filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	hub := startHub(t, d, p.bin)

	// It says what is missing, and what to do about it.
	p.begin("Pair it")
	p.fails("localpc secrets file", "pair", hub.address, "--code")
	p.says("localpc secrets file", "status")
	p.says("Secrets are kept in memory", "status")
	p.says("!   secrets    This computer's keychain can't be used", "doctor")
	p.fails("end it first", "secrets", "file", "--passphrase-file", "/dev/null")
	p.quit()
	p.says("kept in the keychain", "secrets")

	// The person chooses the file, with a passphrase that is theirs alone.
	open := p.passphraseFile("open", filePassphrase, 0o644)
	p.fails("chmod 600 "+open, "secrets", "file", "--passphrase-file", open)
	p.fails("8 characters", "secrets", "file", "--passphrase-file", p.passphraseFile("short", "1234567", 0o600))
	if _, err := os.Stat(vault); err == nil || settingOf(t, p, "secrets") != "keychain" {
		t.Error("what was refused changed something")
	}
	pass := p.passphraseFile("pass", filePassphrase, 0o600)
	p.says(vault, "secrets", "file", "--passphrase-file", pass)
	if got := settingOf(t, p, "secrets"); got != "file" {
		t.Errorf("the settings have %q", got)
	}
	if fi, err := os.Stat(vault); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", fi, err)
	}
	p.says("each start needs its passphrase", "doctor")

	// Without the passphrase it says so and goes on, with the hub inside.
	p.begin("refused")
	if !strings.Contains(p.p.Output(), vault+" is locked") {
		t.Errorf("it says %q", p.p.Output())
	}
	p.fails("--passphrase-file", "pair", hub.address, "--code")
	p.says("which is locked", "status")
	p.says("!   secrets    The encrypted file of this computer's secrets is locked", "doctor")
	p.pair()
	p.says("kept in memory", "status")
	p.must("unpair")
	p.quit()

	// With it, pairing works as with a keychain.
	args := []string{"--passphrase-file", pass, "--policy", "contained", "--folder", folder}
	p.begin("refused", args...)
	pairing := d.StartCmd("pair", p.without("DISPLAY=", "pair", hub.address, "--data", p.data))
	d.WaitOutput(pairing, 20*time.Second, "type this code")
	hub.open("/pair").fill("Code", p.status().Connect.SignIn.UserCode).click("Go on").sees(p.status().Machine)
	hub.tick("I started this on that computer").click("Yes, connect this computer").sees("connected")
	if exit := pairing.ExitCode(20 * time.Second); exit != 0 {
		t.Errorf("pair ended with %d: %s", exit, pairing.Output())
	}
	online := func(s snapshot.Snapshot) bool {
		return s.Hub.Online && s.Hub.SignIn == "kept in an encrypted file" && s.Secrets == "in an encrypted file" && len(s.Warnings) == 0
	}
	p.waitStatus(20*time.Second, "online", online)
	p.says("ok  secrets    kept in an encrypted file", "doctor")
	p.nowhereElse(hub, folder, pass)

	// Killed and started as a unit does, it is online again.
	p.p.Kill()
	p.begin("refused", args...)
	p.waitStatus(20*time.Second, "online after kill -9", online)
	p.quit()
	whole := p.must("record", "verify", "--passphrase-file", pass)
	if strings.Contains(whole, "not the keychain's now") || strings.Contains(whole, "could not be compared") {
		t.Errorf("the record: %s", whole)
	}
	p.says("name its passphrase", "record", "verify")

	// A wrong passphrase, and a damaged file.
	before := fileOf(t, vault)
	wrong := p.passphraseFile("wrong", "some other words", 0o600)
	p.ends("the passphrase is wrong: it does not open "+vault, "--passphrase-file", wrong)
	p.fails("the passphrase is wrong", "record", "verify", "--passphrase-file", wrong)
	if !bytes.Equal(fileOf(t, vault), before) {
		t.Error("a wrong passphrase has changed the file")
	}
	damaged := bytes.Clone(before)
	damaged[len(damaged)/2] ^= 1
	if err := os.WriteFile(vault, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	p.ends(vault+" is damaged", "--passphrase-file", pass)
	p.says(vault+" is damaged", "doctor")
	if err := os.WriteFile(vault, before, 0o600); err != nil {
		t.Fatal(err)
	}
	p.begin("refused", args...)
	p.waitStatus(20*time.Second, "online", online)
	p.must("unpair")
}

// nowhereElse looks for the passphrase and the tokens: they are in no other
// file, no process's environment or command line, and commands can't read them.
func (p *program) nowhereElse(hub *ownHub, folder, pass string) {
	p.t.Helper()
	v, err := login.OpenVault(filepath.Join(p.data, "secrets.age"), filePassphrase)
	if err != nil {
		p.t.Fatal(err)
	}
	tokens, err := login.Load(p.t.Context(), v, login.TokenItem(hub.address))
	if err != nil || !strings.HasPrefix(tokens.Refresh, "lpr_") {
		p.t.Fatalf("the file has %+v, %v", tokens, err)
	}
	for _, secret := range []string{tokens.Access, tokens.Refresh} {
		noFileHolds(p.t, p.d.Home, secret)
	}
	noFileHolds(p.t, p.data, filePassphrase)

	s := newSDK(p.t, hub.key("Research agent"))
	s.start("create", nil).ok(30 * time.Second)
	const marker = "86399.77"
	s.start("run", map[string]any{"cmd": "sleep " + marker})
	if !p.d.Until(20*time.Second, func() bool { return len(sleepers(marker)) == 1 }) {
		p.t.Fatal("the command does not run")
	}
	pids := []string{strconv.Itoa(p.p.PID), sleepers(marker)[0]}
	for _, f := range p.d.Processes() {
		pids = append(pids, strconv.Itoa(f.PID))
	}
	read := 0
	for _, pid := range pids {
		for _, name := range []string{"environ", "cmdline"} {
			b, err := os.ReadFile("/proc/" + pid + "/" + name)
			if err == nil {
				read++
			}
			if bytes.Contains(b, []byte(filePassphrase)) {
				p.t.Errorf("the passphrase is in the %s of %s", name, pid)
			}
		}
	}
	if read < 8 {
		p.t.Errorf("looked at too little: %d", read)
	}
	got := resultOf(p.t, s.start("run", map[string]any{"cmd": "env; cat " + pass + " " + p.data + "/secrets.age /proc/*/environ 2>&1 | tr '\\0' '\\n'"}).ok(20*time.Second))
	if out := got.Stdout + got.Stderr; strings.Contains(out, filePassphrase) || strings.Contains(out, "AGE ENCRYPTED") || !strings.Contains(out, "No such file") {
		p.t.Errorf("a command reads %s", out)
	}
}

// without is localpc as a command whose environment has none of these.
func (p *program) without(prefix string, args ...string) *exec.Cmd {
	cmd := p.d.Command(filepath.Join(p.bin, "localpc"), args...)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, prefix) })
	return cmd
}

// What is kept moves from the keychain to the file and back; the pairing and
// the record go on.
func TestSecretsMoveBothWays(t *testing.T) {
	t.Parallel()
	p := headless(t, apptest.Options{})
	d, vault := p.d, filepath.Join(p.data, "secrets.age")
	pass := p.passphraseFile("pass", filePassphrase, 0o600)
	p.begin("Pair it")
	p.pair()
	// Doctor tells of the program's keychain, not of its own terminal's.
	q := d.StartCmd("doctor", p.without("DBUS_SESSION_BUS_ADDRESS=", "doctor", "--data", p.data))
	d.WaitOutput(q, 20*time.Second, "ok  secrets    kept in the keychain")
	p.quit()
	id := settingOf(t, p, "machine_id")
	kept := func() (items []string) {
		for _, item := range []string{"record-key", "hub-token this"} {
			if out, err := d.Run(20*time.Second, "secret-tool", "lookup", "service", "localpc", "username", item+"@"+id); err == nil && out != "" {
				items = append(items, out)
			}
		}
		return items
	}
	before := kept()
	if len(before) != 2 {
		t.Fatalf("the keychain has %d items", len(before))
	}
	p.says(vault, "secrets", "file", "--passphrase-file", pass)
	if left := kept(); len(left) != 0 {
		t.Errorf("the keychain still has %d items", len(left))
	}
	p.says(vault, "secrets")
	p.begin("running", "--passphrase-file", pass)
	p.waitStatus(20*time.Second, "online", func(s snapshot.Snapshot) bool {
		return s.Hub.Online && s.Hub.SignIn == "kept in an encrypted file" && len(s.Warnings) == 0
	})
	p.quit()

	p.fails("the passphrase is wrong", "secrets", "keychain", "--passphrase-file", p.passphraseFile("wrong", "some other words", 0o600))
	p.fails("no terminal", "secrets", "keychain")
	if left := kept(); len(left) != 0 || settingOf(t, p, "secrets") != "file" {
		t.Errorf("what failed moved %d items", len(left))
	}
	p.says("kept in the keychain", "secrets", "keychain", "--passphrase-file", pass)
	if after := kept(); !slices.Equal(after, before) {
		t.Error("the keychain has something else than before")
	}
	if _, err := os.Stat(vault); err == nil {
		t.Error("the file is still there")
	}
	// A start with a passphrase is the choice too, and moves in the same way.
	p.begin("running", "--passphrase-file", pass)
	p.waitStatus(20*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online && s.Hub.SignIn == "kept in an encrypted file" })
	if left := kept(); len(left) != 0 {
		t.Errorf("the keychain still has %d items", len(left))
	}
	p.quit()
	whole := p.must("record", "verify", "--passphrase-file", pass)
	if strings.Contains(whole, "not the keychain's now") || strings.Contains(whole, "memory") {
		t.Errorf("the record: %s", whole)
	}

	// Paired elsewhere, with a keychain that can't be read: nothing is left
	// behind in it unasked.
	p.must("secrets", "keychain", "--passphrase-file", pass)
	settings := filepath.Join(p.data, "settings.toml")
	text := bytes.Replace(fileOf(t, settings), []byte(`hub = "this"`), []byte(`hub = "https://hub.example"`), 1)
	if err := os.WriteFile(settings, text, 0o600); err != nil {
		t.Fatal(err)
	}
	d.LockKeyring()
	q = d.StartCmd("secrets", p.without("DISPLAY=", "secrets", "file", "--data", p.data, "--passphrase-file", pass))
	if code := q.ExitCode(40 * time.Second); code != exitFail || !strings.Contains(q.Output(), "may have the sign-in at https://hub.example") {
		t.Errorf("it ended with %d: %s", code, q.Output())
	}
	if _, err := os.Stat(vault); err == nil || settingOf(t, p, "secrets") != "keychain" {
		t.Error("what was refused changed something")
	}
}

// In a terminal without a keychain the passphrase is offered to be typed; it is
// not shown, and asked at the next start.
func TestPassphraseTypedInATerminal(t *testing.T) {
	t.Parallel()
	p := headless(t, apptest.Options{NoKeyring: true})
	vault := filepath.Join(p.data, "secrets.age")
	var keyboard io.WriteCloser
	terminal := func() {
		t.Helper()
		cmd := p.without("DISPLAY=")
		cmd.Path, cmd.Args = "/usr/bin/script", []string{"script", "-qefc", "trap : INT; " + filepath.Join(p.bin, "localpc") + " run --data " + p.data + " --embedded-hub " + p.addr + "; c=$?; stty -a; exit $c", "/dev/null"}
		var err error
		if keyboard, err = cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { keyboard.Close() })
		p.p = p.d.StartCmd("localpc", cmd)
	}
	answer := func(prompt, line string) {
		t.Helper()
		p.d.WaitOutput(p.p, 20*time.Second, prompt)
		time.Sleep(300 * time.Millisecond) // as long as a person's hand needs: the terminal has stopped showing what is typed
		if _, err := io.WriteString(keyboard, line); err != nil {
			t.Fatal(err)
		}
	}
	// Ctrl+C ends it, and leaves a terminal that shows what is typed.
	terminal()
	answer("press Enter to go on without", "\x03")
	if code := p.p.ExitCode(20 * time.Second); code != exitFail {
		t.Errorf("Ctrl+C ended it with %d: %s", code, p.p.Output())
	}
	if out := p.p.Output(); !strings.Contains(out, " echo ") || strings.Contains(out, "-echo ") {
		t.Errorf("the terminal is left with %s", out)
	}
	// Enter goes on without.
	terminal()
	answer("press Enter to go on without", "\n")
	p.d.WaitOutput(p.p, 20*time.Second, "without a display")
	p.quit()
	if settingOf(t, p, "secrets") != "keychain" {
		t.Error("nobody chose the file")
	}

	terminal()
	answer("press Enter to go on without", "short\n")
	answer("too short", filePassphrase+"\n")
	answer("The same once more", "not the same\n")
	answer("differ", filePassphrase+"\n")
	p.d.Until(20*time.Second, func() bool { return strings.Count(p.p.Output(), "The same once more") == 2 })
	answer("The same once more", filePassphrase+"\n")
	p.d.WaitOutput(p.p, 20*time.Second, "without a display")
	if strings.Contains(p.p.Output(), filePassphrase) {
		t.Error("the passphrase is shown")
	}
	p.waitStatus(20*time.Second, "the file", func(s snapshot.Snapshot) bool { return s.Secrets == "in an encrypted file" && len(s.Warnings) == 0 })
	p.quit()
	if got := settingOf(t, p, "secrets"); got != "file" {
		t.Errorf("the settings have %q", got)
	}

	terminal()
	answer("Passphrase of "+vault, "a wrong one\n")
	answer("the passphrase is wrong", filePassphrase+"\n")
	p.d.WaitOutput(p.p, 20*time.Second, "without a display")
	p.pair() // kept, now
	p.waitStatus(20*time.Second, "kept", func(s snapshot.Snapshot) bool { return s.Hub.SignIn == "kept in an encrypted file" })
	p.quit()

	terminal()
	answer("Enter: go on without", "\n")
	p.d.WaitOutput(p.p, 20*time.Second, vault+" is locked")
	p.d.WaitOutput(p.p, 20*time.Second, "without a display")
	p.waitStatus(20*time.Second, "in memory", func(s snapshot.Snapshot) bool {
		return s.Hub.Online && s.Hub.SignIn == "kept in memory until this program ends"
	})
	p.quit()
}
