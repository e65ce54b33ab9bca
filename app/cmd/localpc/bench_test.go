//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"localpc/app/apptest"
)

// BenchmarkTable is "make bench": what a command costs through hub, tunnel and
// gate, and what the idle program costs, each against what is measured beside
// it in the same run. It prints a table; nothing fails by being slow.
func BenchmarkTable(b *testing.B) {
	if b.N > 1 {
		b.Skip("one round tells it: -benchtime 1x")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "\nsh -c true\tmedian\tp95\tto bare\tto ssh")
	rows := perCommand(b)
	bare, ssh := median(rows[0].took), median(rows[1].took)
	for _, r := range rows {
		m := median(r.took)
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f ×\t%.2f ×\n", r.name, m.Round(10*time.Microsecond), quantile(r.took, 0.95).Round(10*time.Microsecond),
			float64(m)/float64(bare), float64(m)/float64(ssh))
	}
	fmt.Fprintln(w, "\nidle, tray shown\tresident\tits share\twake-ups a second\tmemory to systray alone")
	idle := idlers(b)
	for _, c := range idle {
		fmt.Fprintf(w, "%s\t%.1f MB\t%.1f MB\t%.1f\t%.1f ×\n", c.name, float64(c.Resident)/1e6, float64(c.Share)/1e6, c.Wakeups, float64(c.Resident)/float64(idle[0].Resident))
	}
	w.Flush()
}

// timed is one row: the same work, done again and again.
type timed struct {
	name string
	do   func() error
	took []time.Duration
}

func median(d []time.Duration) time.Duration { return quantile(d, 0.5) }

func quantile(d []time.Duration, q float64) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[int(q*float64(len(s)-1))]
}

// perCommand takes turns, so that what else the computer does meets all alike.
func perCommand(b *testing.B) []*timed {
	rows := []*timed{
		{name: "bare fork and exec", do: func() error { return exec.Command("sh", "-c", "true").Run() }},
		{name: "ssh, ControlMaster", do: overSSH(b)},
		{name: "localpc, contained", do: throughHub(b, "contained")},
		{name: "localpc, full access", do: throughHub(b, "full")},
	}
	const rounds, warm = 220, 20
	for i := range rounds {
		for _, r := range rows {
			began := time.Now()
			if err := r.do(); err != nil {
				b.Fatalf("%s: %v", r.name, err)
			}
			if i >= warm {
				r.took = append(r.took, time.Since(began))
			}
		}
	}
	return rows
}

// overSSH starts a server of its own and keeps one connection to it.
func overSSH(b *testing.B) func() error {
	s := startSSH(b)
	return s.master(b, s.address)
}

// ssh is a server of OpenSSH on loopback, and the key that opens it.
type ssh struct{ dir, user, address string }

func startSSH(b *testing.B) *ssh {
	s := &ssh{dir: b.TempDir(), address: freeAddress(b)}
	for _, name := range []string{"host", "person"} {
		runs(b, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(s.dir, name))
	}
	me, err := user.Current()
	if err != nil {
		b.Fatal(err)
	}
	s.user = me.Username
	host, port, _ := net.SplitHostPort(s.address)
	conf := filepath.Join(s.dir, "sshd_config")
	// At a deeper level bash reads no start-up file of the person who measures.
	put(b, conf, "ListenAddress "+host+":"+port+"\nHostKey "+s.dir+"/host\nAuthorizedKeysFile "+s.dir+"/person.pub\nStrictModes no\nUsePAM no\nSetEnv SHLVL=2\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n")
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			b.Fatal(err)
		}
	}
	sshd, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		b.Fatal("there is no sshd; make bench installs it")
	}
	server := exec.Command(sshd, "-D", "-f", conf)
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if c, err := net.Dial("tcp", s.address); err == nil {
			c.Close()
			return s
		}
	}
	b.Fatal("sshd does not listen")
	return nil
}

// options of ssh and scp; portFlag is how they name the port of address.
func (s *ssh) options(portFlag, address string) []string {
	_, port, _ := net.SplitHostPort(address)
	return []string{"-F", "none", "-i", filepath.Join(s.dir, "person"), portFlag, port, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"}
}

// master keeps one connection over address, and runs commands over it.
func (s *ssh) master(b *testing.B, address string) func() error {
	_, port, _ := net.SplitHostPort(address)
	args := append(s.options("-p", address), "-S", filepath.Join(s.dir, "m"+port))
	to := s.user + "@127.0.0.1"
	master := exec.Command("ssh", append(slices.Clone(args), "-M", "-N", to)...)
	if err := master.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = master.Process.Kill(); _ = master.Wait() })
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if exec.Command("ssh", append(slices.Clone(args), "-O", "check", to)...).Run() == nil {
			break
		}
	}
	return func() error { return exec.Command("ssh", append(slices.Clone(args), to, "sh -c true")...).Run() }
}

// throughHub starts the program with the hub inside, and calls it as the E2B
// SDK does, over one kept HTTP connection.
func throughHub(b *testing.B, policy string) func() error {
	d := apptest.New(b, apptest.Options{NoTray: true, NoNotifications: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	addr := freeAddress(b)
	data, folder := filepath.Join(d.Home, "data"), filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	d.Give(folder)
	cmd := d.Command(filepath.Join(bin, "localpc"), "run", "--data", data, "--embedded-hub", addr, "--policy", policy, "--folder", folder)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") })
	d.WaitOutput(d.StartCmd("localpc", cmd), 20*time.Second, "running")
	if out, err := d.Run(30*time.Second, filepath.Join(bin, "localpc"), "pair", "this", "--data", data); err != nil {
		b.Fatal(err, out)
	}
	out, err := d.Run(30*time.Second, filepath.Join(bin, "localpc-hub"), "key", "add", "Bench", "--data", filepath.Join(data, "hub"))
	if err != nil {
		b.Fatal(err)
	}
	var made struct {
		SandboxID       string `json:"sandboxID"`
		EnvdAccessToken string `json:"envdAccessToken"`
	}
	d.Until(20*time.Second, func() bool {
		req, _ := http.NewRequest("POST", "http://"+addr+"/api/sandboxes", strings.NewReader(`{"templateID":"base","timeout":3600,"secure":true}`))
		req.Header.Set("X-API-KEY", keyIn(out))
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == 201 && json.NewDecoder(resp.Body).Decode(&made) == nil
	})
	if made.SandboxID == "" {
		b.Fatal("no sandbox was made")
	}
	client := &http.Client{}
	b.Cleanup(client.CloseIdleConnections)
	message := []byte(`{"process":{"cmd":"/bin/sh","args":["-c","true"]}}`)
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	return func() error {
		req, err := http.NewRequestWithContext(context.Background(), "POST", "http://"+addr+"/sbx/process.Process/Start", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header = http.Header{"E2b-Sandbox-Id": {made.SandboxID}, "X-Access-Token": {made.EnvdAccessToken},
			"Content-Type": {"application/connect+json"}, "Connect-Protocol-Version": {"1"}}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && !bytes.Contains(answer, []byte(`"exited":true`)) {
			err = fmt.Errorf("the answer is %q", answer)
		}
		return err
	}
}

// idler is one program that does nothing.
type idler struct {
	name string
	apptest.Cost
}

func idlers(b *testing.B) []idler {
	const during = 20 * time.Second
	watch := func(name string, begin func(d *apptest.Desktop) *apptest.Process) idler {
		d := apptest.New(b, apptest.Options{})
		p := begin(d)
		d.WaitTrayIcon(20 * time.Second)
		time.Sleep(5 * time.Second)
		c, err := apptest.Idle(p.PID, during)
		if err != nil {
			b.Fatal(err)
		}
		return idler{name, c}
	}
	return []idler{
		watch("systray alone", func(d *apptest.Desktop) *apptest.Process {
			cmd := d.Command(filepath.Join(d.Install("localpc/app/tray/testdata/program"), "program"))
			cmd.Stdin = strings.NewReader("{\"state\":\"online\"}\n")
			return d.StartCmd("systray", cmd)
		}),
		watch("an empty Fyne tray program", func(d *apptest.Desktop) *apptest.Process {
			return d.Start(filepath.Join(d.Install("localpc/app/ui/testdata/emptytray"), "emptytray"))
		}),
		watch("localpc, paired with its hub inside", func(d *apptest.Desktop) *apptest.Process {
			bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-desktop", "localpc/app/cmd/localpc-spawn")
			args := []string{"run", "--data", filepath.Join(d.Home, "data"), "--embedded-hub", freeAddress(b)}
			begin := func() *apptest.Process {
				p := d.Start(filepath.Join(bin, "localpc"), args...)
				d.WaitOutput(p, 20*time.Second, "running")
				return p
			}
			p := begin()
			// A paired program opens no window when it starts again.
			for _, word := range []string{"pair this", "quit"} {
				if out, err := d.Run(30*time.Second, filepath.Join(bin, "localpc"), append(strings.Fields(word), args[1:3]...)...); err != nil {
					b.Fatal(err, out)
				}
			}
			p.ExitCode(20 * time.Second)
			return begin()
		}),
	}
}

func runs(b *testing.B, name string, args ...string) {
	b.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func put(b *testing.B, path, text string) {
	b.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}
