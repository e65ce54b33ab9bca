package hub

import (
	"context"
	"encoding/base64"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// piece is how much of a file is asked for at once: base64 of it stays far
// below what one frame may hold.
const piece = 4 << 20

// longest is the most time that a command gets on such a computer.
const longest = msg.CommandTimeout

// ask sends one request and gives its reply, which is a T.
func ask[T wire.Payload](j *job, t msg.Type, p wire.Payload) (T, error) {
	var none T
	m, err := j.c.h.chats.Do(j.ctx, j.b.Session, t, p)
	if err != nil {
		return none, err
	}
	reply, ok := m.Payload.(T)
	if !ok {
		return none, wire.Errorf(autogpt.CodeInvalidReply, "The computer answered something else than was asked.")
	}
	return reply, nil
}

func (j *job) real(name string) string { return realName(j.b.Root, name) }

// execute runs a command to its end: 1.1 tells of the output only then.
func (j *job) execute(p *wire.ProcessStart) error {
	if p.Stdin || p.PTY != nil {
		return wire.Errorf(wire.CodeNotSupported, "Commands that read input, and terminals, cannot run on this computer: it is connected with AutoGPT's program, which offers neither.")
	}
	if p.TimeoutMS == 0 {
		return wire.Errorf(wire.CodeNotSupported, "Commands without a time limit, in the background for one, cannot run on this computer: it is connected with AutoGPT's program, which gives a command %g seconds at most. Give the command a time limit.", longest.Seconds())
	}
	limit := time.Duration(p.TimeoutMS) * time.Millisecond
	seconds := int64(math.Ceil(min(limit, longest).Seconds()))
	e := &msg.Execute{Shell: "auto", Timeout: &seconds, Env: msg.Map{}}
	for _, env := range []map[string]string{j.b.Env, p.Env} {
		for k, v := range env {
			e.Env[k] = v
		}
	}
	if p.Cwd != "" {
		cwd := j.real(p.Cwd)
		e.Cwd = &cwd
	}
	// The SDKs wrap every command so. The computer's own shell does it as well,
	// and there is one on Windows too.
	if p.Cmd == "/bin/bash" && len(p.Args) == 3 && p.Args[0] == "-l" && p.Args[1] == "-c" {
		e.Command = &p.Args[2]
	} else {
		e.Argv = append([]string{p.Cmd}, p.Args...)
	}
	r, err := ask[*msg.Result](j, msg.TypeExecute, e)
	if err != nil {
		return err
	}
	if err := j.send(wire.TypeProcessStarted, &wire.ProcessStarted{PID: int(j.c.pids.Add(1))}); err != nil {
		return err
	}
	for _, o := range []struct{ stream, text string }{{"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		for part := range slices.Chunk([]byte(o.text), wire.MaxChunk) {
			if err := j.send(wire.TypeProcessOutput, &wire.ProcessOutput{Stream: o.stream, Data: part}); err != nil {
				return err
			}
		}
	}
	if r.TimedOut && limit > longest {
		return wire.Errorf(wire.CodeStopped, "The command was stopped after %g seconds, the most that this computer's program gives one.", longest.Seconds())
	}
	exited := &wire.ProcessExited{ExitCode: r.ExitCode, TimedOut: r.TimedOut, Truncated: r.Truncated}
	if r.ExitCode < -1 {
		exited.ExitCode, exited.Signal = -1, syscall.Signal(-r.ExitCode).String()
	}
	return j.send(wire.TypeProcessExited, exited)
}

// stat asks about one path.
func (j *job) stat(name string) (*msg.FileStatResponse, error) {
	return ask[*msg.FileStatResponse](j, msg.TypeFileStat, &msg.FileStat{Path: j.real(name), FollowSymlinks: true})
}

// there asks about one path that must be there.
func (j *job) there(name string) (*msg.FileStatResponse, error) {
	s, err := j.stat(name)
	if err == nil && !s.Exists {
		err = wire.Errorf(wire.CodePathNotFound, "There is nothing at %s.", name)
	}
	return s, err
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

// entry describes a path in the form that it was asked with.
func entry(name string, s *msg.FileStatResponse) *wire.Entry {
	mode, _ := strconv.ParseUint(value(s.Mode), 8, 12)
	e := &wire.Entry{Name: baseName(name), Path: name, Kind: kindOf(value(s.IsFile), value(s.IsDir)), Size: max(value(s.Size), 0), Mode: uint32(mode), MTime: millis(s.MTime)}
	if value(s.IsSymlink) {
		e.LinkTarget = value(s.Path)
	}
	return e
}

func kindOf(file, dir bool) string {
	switch {
	case file:
		return "file"
	case dir:
		return "dir"
	}
	return "other"
}

func millis(seconds *float64) int64 {
	ms := value(seconds) * 1000
	if math.IsNaN(ms) || math.Abs(ms) > 1e15 {
		return 0
	}
	return int64(ms)
}

// read sends a file on in pieces.
func (j *job) read(p *wire.FileRead) error {
	s, err := j.there(p.Path)
	if err != nil {
		return err
	}
	if !value(s.IsFile) {
		return wire.Errorf(wire.CodePathKind, "%s is not a file.", p.Path)
	}
	size := max(value(s.Size), 0)
	left := max(size-p.Offset, 0)
	if p.Length != nil {
		left = min(left, *p.Length)
	}
	if err := j.send(wire.TypeFileContents, &wire.FileContents{Size: size, Length: left, MTime: millis(s.MTime)}); err != nil {
		return err
	}
	for offset := p.Offset; left > 0; {
		n := min(left, piece)
		r, err := ask[*msg.FileContents](j, msg.TypeFileRead, &msg.FileRead{Path: j.real(p.Path), Encoding: msg.Base64, Format: "bytes", Offset: offset, Length: &n})
		if err != nil {
			return err
		}
		data, err := base64.StdEncoding.DecodeString(r.Content)
		if err != nil || r.Encoding != msg.Base64 {
			return wire.Errorf(autogpt.CodeInvalidReply, "The computer's answer could not be understood.")
		}
		if int64(len(data)) != n {
			return wire.Errorf(wire.CodeChanged, "%s was changed while it was read.", p.Path)
		}
		for part := range slices.Chunk(data, wire.MaxChunk) {
			if err := j.send(wire.TypeFileChunk, &wire.FileChunk{Data: part}); err != nil {
				return err
			}
		}
		offset, left = offset+n, left-n
	}
	return j.send(wire.TypeAck, &wire.Empty{})
}

// write gathers a file, which 1.1 takes in one frame.
func (j *job) write(p *wire.FileWrite) error {
	if len(p.Metadata) > 0 {
		return wire.Errorf(wire.CodeNotSupported, "No metadata can be kept with files on a computer that is connected with AutoGPT's program; leave it out.")
	}
	var data []byte
	for last := false; !last; {
		select {
		case c := <-j.in:
			if len(data)+len(c.Data) > msg.MaxFile {
				return wire.Errorf(wire.CodeTooLarge, "%s has more than %d MiB, the most that this computer's program takes.", p.Path, msg.MaxFile>>20)
			}
			data, last = append(data, c.Data...), c.Last
		case <-j.ctx.Done():
			return wire.Wrap(context.Cause(j.ctx), wire.CodeCancelled, "The request was cancelled.")
		}
	}
	if _, err := ask[*msg.Ack](j, msg.TypeFileWrite, &msg.FileWrite{Path: j.real(p.Path), Content: base64.StdEncoding.EncodeToString(data), Encoding: msg.Base64, CreateParents: !p.NoParents}); err != nil {
		return err
	}
	return j.describe(p.Path)
}

// describe ends a request with what is there now.
func (j *job) describe(name string) error {
	s, err := j.there(name)
	if err != nil {
		return err
	}
	return j.send(wire.TypeFileStatResponse, &wire.FileStatResponse{Exists: true, Entry: entry(name, s)})
}

func (j *job) look(p *wire.FileStat) error {
	s, err := ask[*msg.FileStatResponse](j, msg.TypeFileStat, &msg.FileStat{Path: j.real(p.Path), FollowSymlinks: !p.NoFollow})
	if err != nil {
		return err
	}
	out := &wire.FileStatResponse{Exists: s.Exists}
	if s.Exists {
		out.Entry = entry(p.Path, s)
	}
	return j.send(wire.TypeFileStatResponse, out)
}

func (j *job) remove(p *wire.FileDelete) error {
	if _, err := ask[*msg.Ack](j, msg.TypeFileDelete, &msg.FileDelete{Path: j.real(p.Path), Recursive: !p.OnlyEmpty, MissingOK: !p.MustExist}); err != nil {
		return err
	}
	return j.send(wire.TypeAck, &wire.Empty{})
}

// mkdir makes a directory by a file in it, as 1.1 has no other word for that
// which needs no shell.
func (j *job) mkdir(name string) error {
	s, err := j.stat(name)
	if err != nil {
		return err
	}
	if s.Exists {
		return wire.Errorf(wire.CodePathExists, "There is something at %s already.", name)
	}
	if err := j.make(name); err != nil {
		return err
	}
	return j.describe(name)
}

func (j *job) make(name string) error {
	keep := j.real(path.Join(name, ".localpc-new-directory"))
	if windowsPath(name) {
		keep = strings.TrimSuffix(name, `\`) + `\.localpc-new-directory`
	}
	if _, err := ask[*msg.Ack](j, msg.TypeFileWrite, &msg.FileWrite{Path: keep, Encoding: msg.UTF8, CreateParents: true}); err != nil {
		return err
	}
	_, err := ask[*msg.Ack](j, msg.TypeFileDelete, &msg.FileDelete{Path: keep, MissingOK: true})
	return err
}

// move replaces a file, never a directory, and moves nothing onto itself: a
// computer may remove what is in the way first.
func (j *job) move(p *wire.FileMove) error {
	src, err := j.there(p.Src)
	if err != nil {
		return err
	}
	dst, err := j.stat(p.Dst)
	if err != nil {
		return err
	}
	switch {
	case dst.Exists && p.NoReplace:
		return wire.Errorf(wire.CodePathExists, "There is something at %s already.", p.Dst)
	case dst.Exists && src.Path != nil && dst.Path != nil && *src.Path == *dst.Path:
		return j.describe(p.Dst)
	case dst.Exists && !value(dst.IsFile):
		return wire.Errorf(wire.CodePathExists, "There is something at %s already that is not a file.", p.Dst)
	}
	if parent := path.Dir(p.Dst); !dst.Exists && !windowsPath(p.Dst) && parent != "." {
		above, err := j.stat(parent)
		switch {
		case err != nil:
			return err
		case !above.Exists && p.NoParents:
			return wire.Errorf(wire.CodePathNotFound, "There is no directory %s.", parent)
		case !above.Exists:
			if err := j.make(parent); err != nil {
				return err
			}
		}
	}
	if _, err := ask[*msg.Ack](j, msg.TypeFileMove, &msg.FileMove{Src: j.real(p.Src), Dst: j.real(p.Dst), Overwrite: dst.Exists}); err != nil {
		return err
	}
	return j.describe(p.Dst)
}

func (j *job) list(p *wire.FileList) error {
	s, err := j.there(p.Path)
	if err != nil {
		return err
	}
	if !value(s.IsDir) {
		return wire.Errorf(wire.CodePathKind, "%s is not a directory.", p.Path)
	}
	r, err := ask[*msg.FileListResponse](j, msg.TypeFileList, &msg.FileList{Path: j.real(p.Path), Recursive: p.Depth > 1, IncludeHidden: true, MaxEntries: msg.MaxEntries})
	if err != nil {
		return err
	}
	if r.Truncated {
		return wire.Errorf(wire.CodeTooLarge, "%s has too many entries to list at once; list its parts, or with less depth.", p.Path)
	}
	dir := j.real(p.Path)
	if s.Path != nil {
		dir = *s.Path
	}
	entries := []wire.Entry{}
	for _, e := range r.Entries {
		rel := relative(dir, e.Path)
		if rel == "" {
			return wire.Errorf(autogpt.CodeInvalidReply, "The computer listed something that is not in the directory.")
		}
		if strings.Count(rel, "/")+1 > p.Depth {
			continue
		}
		one := wire.Entry{Name: e.Name, Path: path.Join(p.Path, rel), Kind: kindOf(e.IsFile, e.IsDir), Size: max(value(e.Size), 0), MTime: millis(e.MTime), Mode: 0o644}
		if e.IsDir {
			one.Mode = 0o755
		}
		if e.IsSymlink {
			one.LinkTarget = e.Path
		}
		entries = append(entries, one)
	}
	slices.SortFunc(entries, func(a, b wire.Entry) int { return strings.Compare(a.Path, b.Path) })
	for part := range slices.Chunk(entries, 1000) {
		if err := j.send(wire.TypeFileListResponse, &wire.FileListResponse{Entries: part}); err != nil {
			return err
		}
	}
	return j.send(wire.TypeAck, &wire.Empty{})
}
