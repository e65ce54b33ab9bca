package desklink_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/consent"
)

type sink struct{ io.Writer }

func (sink) Close() error { return nil }

func TestReceive(t *testing.T) {
	defer goleak.VerifyNone(t)
	long := `{"show":{"window":"` + strings.Repeat("x", desklink.MaxLine) + `"}}`
	in := strings.Join([]string{
		`{"show":{"window":"pair"}}`,
		`nonsense`,
		`{}`,
		`{"quit":true,"show":{"window":"pair"}}`,
		`{"quit":true} {"quit":true}`,
		``,
		long,
		`{"card":{"request":{"id":"a","sentence":"two\nlines"},"digits":"12","arm_ms":700},"of_a_later_version":1}`,
		`{"quit":true}`,
		`{"quit":tr`, // cut off by the end
	}, "\n")
	c := desklink.NewChild(io.NopCloser(strings.NewReader(in)), sink{io.Discard})
	var got []string
	for {
		d, err := c.Receive()
		var bad *desklink.BadLine
		switch {
		case errors.As(err, &bad):
			if errors.Is(err, desklink.ErrLineTooLong) {
				got = append(got, "long")
			} else {
				got = append(got, "bad")
			}
			continue
		case err == io.EOF:
			want := "show bad bad bad bad bad long card quit"
			if s := strings.Join(got, " "); s != want {
				t.Fatalf("received %q, want %q", s, want)
			}
			return
		case err != nil:
			t.Fatal(err)
		}
		switch {
		case d.Show != nil:
			got = append(got, "show")
		case d.Card != nil:
			if d.Card.Request.Sentence != "two\nlines" {
				t.Errorf("sentence %q", d.Card.Request.Sentence)
			}
			got = append(got, "card")
		case d.Quit:
			got = append(got, "quit")
		}
	}
}

func TestSendKeepsLinesWhole(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, w := io.Pipe()
	c := desklink.NewChild(io.NopCloser(strings.NewReader("")), w)
	const n = 50
	var senders sync.WaitGroup
	for range n {
		senders.Go(func() {
			up := desklink.Up{Intent: &snapshot.Intent{Kind: snapshot.Find, Text: strings.Repeat("line\n", 2000)}}
			if err := c.Send(up); err != nil {
				t.Error(err)
			}
		})
	}
	lines := bufio.NewReaderSize(r, 1<<20)
	for range n {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var up desklink.Up
		if err := json.Unmarshal(line, &up); err != nil || up.Intent == nil {
			t.Fatalf("a line is torn: %v", err)
		}
	}
	senders.Wait()
	big := desklink.Up{Answer: &desklink.CardAnswer{ID: strings.Repeat("x", desklink.MaxLine), Answer: consent.Answer{}}}
	if err := c.Send(big); !errors.Is(err, desklink.ErrLineTooLong) {
		t.Fatalf("a message that is too long: %v", err)
	}
	c.Close()
	if err := c.Send(desklink.Up{}); err == nil {
		t.Fatal("sending on a closed link works")
	}
}

// TestOpenChild plays localpc to a process of this test's binary, which prints
// to its standard output after it has taken the link.
func TestOpenChild(t *testing.T) {
	if os.Getenv("DESKLINK_TEST_CHILD") != "" {
		child()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOpenChild$")
	cmd.Env = append(os.Environ(), "DESKLINK_TEST_CHILD=1")
	errs := filepath.Join(t.TempDir(), "stderr")
	f, err := os.Create(errs)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stderr = f
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, `{"show":{"window":"pair"}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	if got := lines.Text(); got != `{"shown":{"id":"pair"}}` {
		t.Errorf("the link said %q", got)
	}
	in.Close()
	if lines.Scan() {
		t.Errorf("printed text got into the link: %q", lines.Text())
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the child ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		cmd.Process.Kill()
		<-ended
		t.Error("the child did not end when its input did")
	}
	if b, _ := os.ReadFile(errs); !strings.Contains(string(b), "printed by a library") {
		t.Errorf("what was printed is not on standard error: %q", b)
	}
}

func child() {
	link, err := desklink.OpenChild()
	if err != nil {
		os.Exit(3)
	}
	os.Stdout.WriteString("printed by a library\n")
	for {
		d, err := link.Receive()
		if err != nil {
			os.Exit(0)
		}
		if link.Send(desklink.Up{Shown: &desklink.CardRef{ID: d.Show.Window}}) != nil {
			os.Exit(4)
		}
	}
}

func TestCloseEndsReceive(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c := desklink.NewChild(r, sink{io.Discard})
	done := make(chan error, 1)
	go func() { _, err := c.Receive(); done <- err }()
	c.Close()
	select {
	case err := <-done:
		if err == nil {
			t.Fatal("a closed link received something")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Receive still waits")
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"show":{"window":"pair"}}` + "\n"))
	f.Add([]byte("{\n[1]\nnull\n\"\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := desklink.NewChild(io.NopCloser(strings.NewReader(string(b))), sink{io.Discard})
		for range len(b) + 2 {
			_, err := c.Receive()
			var bad *desklink.BadLine
			if err != nil && !errors.As(err, &bad) {
				return
			}
		}
		t.Fatal("more messages than bytes")
	})
}
