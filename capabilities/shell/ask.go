package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"localpc/capabilities/shell/spawn"
	"localpc/consent"
)

// Bounds of what is asked of a program while looking.
const (
	maxAnswer  = 1 << 20
	maxAskTime = 2 * time.Second
)

// ask runs a command that only reads, in a container of its own: the folder is
// read-only, there is no network, the session's temporary files and caches are
// not there, and nothing of the request's environment is.
func (s *Shell) ask(ctx context.Context, pl *plan, dir string, argv []string) ([]byte, error) {
	empty, err := os.MkdirTemp("", "localpc-look-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(empty)
	if err := os.Chmod(empty, 0o500); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxAskTime)
	defer cancel()
	sess := *pl.session
	sess.Mode, sess.Tmp, sess.Cache = consent.ModeLook, empty, empty
	looker := &Shell{o: s.o, login: s.login, extra: s.extra}
	looker.o.Connect = nil
	proc, err := looker.launch(ctx, &plan{argv: argv, within: dir, real: sess.Folder, session: &sess, limit: maxAskTime}, true, "")
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { proc.drain(0) })
	defer stop()
	answer, said := proc.outputs[0], proc.outputs[1]
	go func() {
		defer close(said.done)
		_, _ = io.Copy(io.Discard, said.r)
	}()
	out, err := io.ReadAll(io.LimitReader(answer.r, maxAnswer+1))
	var exit spawn.Event
	select {
	case exit = <-proc.exited:
	case <-ctx.Done():
	}
	within, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	endErr := proc.end(within)
	proc.drain(0)
	<-said.done
	proc.closeFiles()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil || endErr != nil:
		return nil, errors.Join(err, endErr)
	case len(out) > maxAnswer:
		return nil, errors.New("the answer is too long")
	case exit.Code != 0 || exit.Signal != "":
		return nil, fmt.Errorf("ended with code %d %s", exit.Code, exit.Signal)
	}
	return out, nil
}
