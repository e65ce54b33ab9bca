package wire

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	idPattern       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	versionPattern  = regexp.MustCompile(`^\d{1,4}\.\d{1,4}$`)
	metadataPattern = regexp.MustCompile(`^[a-z0-9._-]{1,128}$`)
	namePattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
)

func checkID(field, s string) error {
	if s == "" || len(s) > MaxID || !idPattern.MatchString(s) {
		return fmt.Errorf("%s must be 1 to %d letters, digits, dots, colons, dashes or underscores", field, MaxID)
	}
	return nil
}

func checkName(field, s string, max int) error {
	if s == "" || len(s) > max || !namePattern.MatchString(s) {
		return fmt.Errorf("%s must be a plain name of at most %d bytes", field, max)
	}
	return nil
}

// checkText takes any valid UTF-8 without NUL; who shows it neutralises it.
func checkText(field, s string, max int) error {
	switch {
	case len(s) > max:
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", field, len(s), max)
	case strings.ContainsRune(s, 0):
		return fmt.Errorf("%s contains a NUL character", field)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not valid UTF-8", field)
	}
	return nil
}

func checkWait(ms int) error {
	if ms < 0 || ms > 3600_000 {
		return errors.New("wait_ms must be 0 to 3600000")
	}
	return nil
}

func checkTTL(s int) error {
	if s < 0 || s > 30*24*3600 {
		return errors.New("ttl_seconds must be 0 to 2592000")
	}
	return nil
}

func checkEnv(env map[string]string) error {
	if len(env) > MaxEnv {
		return fmt.Errorf("env has %d variables, at most %d are allowed", len(env), MaxEnv)
	}
	total := 0
	for k, v := range env {
		total += len(k) + len(v)
		if k == "" || len(k) > 256 || strings.ContainsAny(k, "=\x00") || !utf8.ValidString(k) {
			return errors.New("env has a name that is empty, too long, or contains = or NUL")
		}
		if err := checkText("env value", v, MaxCommand); err != nil {
			return err
		}
	}
	if total > MaxEnvBytes {
		return fmt.Errorf("env has %d bytes together, at most %d are allowed", total, MaxEnvBytes)
	}
	return nil
}

func checkSessionPath(session, path string, wait int) error {
	return errors.Join(checkID("session_id", session), checkText("path", path, MaxPath), checkWait(wait))
}

func (*Empty) Validate() error { return nil }

func (h *Hello) Validate() error {
	if !versionPattern.MatchString(h.Protocol) {
		return errors.New("protocol_version must be major.minor")
	}
	if len(h.Capabilities) > 64 || len(h.Sessions) > 256 {
		return errors.New("too many capabilities or sessions")
	}
	for _, c := range h.Capabilities {
		if err := checkName("capability", c, 64); err != nil {
			return err
		}
	}
	for _, s := range h.Sessions {
		if err := checkID("session", s); err != nil {
			return err
		}
	}
	return errors.Join(checkID("machine_id", h.MachineID), checkText("display_name", h.DisplayName, MaxText),
		checkName("software", h.Software, 64), checkName("platform", h.Platform, 32), checkName("arch", h.Arch, 32), checkHead(h.Record))
}

func checkHead(h *RecordHead) error {
	if h == nil {
		return nil
	}
	if b, err := hex.DecodeString(h.Hash); err != nil || len(b) != 32 || h.Seq < 0 {
		return errors.New("record must be a sequence number and 64 hex digits")
	}
	return nil
}

func (h *HelloAck) Validate() error {
	if !versionPattern.MatchString(h.Protocol) {
		return errors.New("protocol_version must be major.minor")
	}
	return errors.Join(checkID("connection_id", h.ConnectionID), checkText("hub_name", h.HubName, MaxText), checkText("account", h.Account, MaxText))
}

func (a *Authorize) Validate() error {
	if a.Token == "" || len(a.Token) > MaxToken || strings.ContainsFunc(a.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("token must be 1 to %d visible ASCII characters", MaxToken)
	}
	return nil
}

func (s *Status) Validate() error {
	if s.InFlight < 0 || s.MaxConcurrent < 1 || s.Waiting < 0 || s.UptimeSeconds < 0 {
		return errors.New("counts must not be negative, max_concurrent at least 1")
	}
	return checkHead(s.Record)
}

func (c *Credit) Validate() error {
	if c.Bytes < 1 || c.Bytes > 64<<20 {
		return errors.New("bytes must be 1 to 67108864")
	}
	return nil
}

func (e *ErrorPayload) Validate() error {
	if e.Code == "" || len(e.Code) > 64 {
		return errors.New("code must be 1 to 64 bytes")
	}
	if b, err := json.Marshal(e.Details); err != nil || len(b) > MaxDetails {
		return fmt.Errorf("details must be at most %d bytes", MaxDetails)
	}
	return checkText("message", e.Message, 4096)
}

func (s *SessionOpen) Validate() error {
	if s.FolderOnly && s.Folder == "" {
		return errors.New("folder_only needs a folder")
	}
	return errors.Join(checkID("session_id", s.SessionID), checkID("principal_id", s.PrincipalID),
		checkText("principal_name", s.PrincipalName, MaxText), checkText("agent", s.Agent, MaxText),
		checkText("title", s.Title, MaxText), checkText("folder", s.Folder, MaxPath),
		checkTTL(s.TTLSeconds), checkEnv(s.Env), checkWait(s.WaitMS))
}

func (s *SessionOpened) Validate() error {
	if s.Mode == "" || len(s.Mode) > 16 {
		return errors.New("mode must be 1 to 16 bytes")
	}
	return errors.Join(checkText("folder", s.Folder, MaxPath), checkTTL(s.TTLSeconds))
}

func (s *SessionTTL) Validate() error {
	return errors.Join(checkID("session_id", s.SessionID), checkTTL(s.TTLSeconds))
}

func (s *SessionRef) Validate() error { return checkID("session_id", s.SessionID) }

func (s *SessionEnded) Validate() error {
	return errors.Join(checkID("session_id", s.SessionID), checkText("reason", s.Reason, MaxText))
}

func (p *ProcessStart) Validate() error {
	if p.Cmd == "" {
		return errors.New("cmd is empty")
	}
	if len(p.Args) > MaxArgs {
		return fmt.Errorf("args has %d entries, at most %d are allowed", len(p.Args), MaxArgs)
	}
	total := 0
	for _, a := range p.Args {
		if err := checkText("argument", a, MaxCommand); err != nil {
			return err
		}
		total += len(a)
	}
	if total > MaxArgBytes {
		return fmt.Errorf("args has %d bytes together, at most %d are allowed", total, MaxArgBytes)
	}
	if p.TimeoutMS < 0 || p.TimeoutMS > 30*24*3600*1000 {
		return errors.New("timeout_ms must be 0 to 2592000000")
	}
	if p.GraceMS < 0 || p.GraceMS > 10_000 {
		return errors.New("grace_ms must be 0 to 10000")
	}
	if p.PTY != nil {
		if err := p.PTY.Validate(); err != nil {
			return err
		}
	}
	return errors.Join(checkSessionPath(p.SessionID, p.Cwd, p.WaitMS), checkText("cmd", p.Cmd, MaxPath), checkEnv(p.Env))
}

func (s *TerminalSize) Validate() error {
	if s.Cols < 1 || s.Cols > 10_000 || s.Rows < 1 || s.Rows > 10_000 {
		return errors.New("cols and rows must be 1 to 10000")
	}
	return nil
}

func (p *ProcessInput) Validate() error { return checkChunk(p.Data) }

func (p *ProcessStarted) Validate() error {
	if p.PID < 1 {
		return errors.New("pid must be positive")
	}
	return nil
}

func (p *ProcessOutput) Validate() error {
	if p.Stream != "stdout" && p.Stream != "stderr" && p.Stream != "pty" {
		return errors.New("stream must be stdout, stderr or pty")
	}
	return checkChunk(p.Data)
}

func checkChunk(b []byte) error {
	if len(b) > MaxChunk {
		return fmt.Errorf("data has %d bytes, at most %d are allowed", len(b), MaxChunk)
	}
	return nil
}

func (p *ProcessExited) Validate() error {
	if p.ExitCode < -1 || p.Running < 0 {
		return errors.New("exit_code must be -1 or more, running not negative")
	}
	return checkText("signal", p.Signal, 64)
}

func (p *ProcessSignal) Validate() error {
	if p.Signal != "SIGTERM" && p.Signal != "SIGKILL" {
		return errors.New("signal must be SIGTERM or SIGKILL")
	}
	if p.PID < 1 {
		return errors.New("pid must be positive")
	}
	return checkID("session_id", p.SessionID)
}

func (f *FileRead) Validate() error {
	if f.Offset < 0 || f.Length != nil && *f.Length < 0 {
		return errors.New("offset and length must not be negative")
	}
	return checkSessionPath(f.SessionID, f.Path, f.WaitMS)
}

func (f *FileContents) Validate() error {
	if f.Size < 0 || f.Length < 0 {
		return errors.New("size and length must not be negative")
	}
	return nil
}

func (f *FileChunk) Validate() error { return checkChunk(f.Data) }

func (f *FileWrite) Validate() error {
	return errors.Join(checkSessionPath(f.SessionID, f.Path, f.WaitMS), checkMetadata(f.Metadata))
}

// checkMetadata: names as they may stand in a header and in an extended
// attribute, in small letters.
func checkMetadata(m map[string]string) error {
	total := 0
	for k, v := range m {
		total += len(k) + len(v)
		if !metadataPattern.MatchString(k) {
			return errors.New("metadata has a name that is not 1 to 128 of a-z, 0-9, dot, dash and underscore")
		}
		if err := checkText("metadata value", v, MaxMetadata); err != nil {
			return err
		}
	}
	if total > MaxMetadata {
		return fmt.Errorf("metadata has %d bytes together, at most %d are allowed", total, MaxMetadata)
	}
	return nil
}

func (f *FileWatch) Validate() error { return checkSessionPath(f.SessionID, f.Path, f.WaitMS) }

func (f *FileChanges) Validate() error {
	if len(f.Changes) > MaxEvents {
		return fmt.Errorf("changes has %d, at most %d are allowed", len(f.Changes), MaxEvents)
	}
	for i := range f.Changes {
		c := &f.Changes[i]
		switch c.Op {
		case "create", "write", "remove", "rename", "chmod":
		default:
			return errors.New("op must be create, write, remove, rename or chmod")
		}
		if err := checkText("name", c.Name, 2*MaxPath); err != nil {
			return err
		}
		if c.Entry != nil {
			if err := c.Entry.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *FileSearch) Validate() error {
	if f.Max < 1 || f.Max > MaxSearch {
		return fmt.Errorf("max must be 1 to %d", MaxSearch)
	}
	return errors.Join(checkSessionPath(f.SessionID, f.Path, f.WaitMS), checkText("name", f.Name, MaxText), checkText("text", f.Text, MaxText))
}

func (f *FileSearchResponse) Validate() error {
	if len(f.Hits) > MaxSearch {
		return fmt.Errorf("hits has %d, at most %d are allowed", len(f.Hits), MaxSearch)
	}
	for i := range f.Hits {
		h := &f.Hits[i]
		if h.Kind != "file" && h.Kind != "dir" && h.Kind != "other" || h.Line < 0 {
			return errors.New("kind must be file, dir or other, line not negative")
		}
		if err := errors.Join(checkText("path", h.Path, 2*MaxPath), checkText("text", h.Text, MaxText)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Metrics) Validate() error {
	if m.Start < 0 || m.End < 0 {
		return errors.New("start and end must not be negative")
	}
	return checkID("session_id", m.SessionID)
}

func (m *MetricsResponse) Validate() error {
	if len(m.Samples) > 10_000 {
		return errors.New("samples has more than 10000")
	}
	for _, s := range m.Samples {
		if s.Time < 0 || s.CPUs < 0 || s.CPUPercent < 0 || s.MemTotal < 0 || s.MemUsed < 0 || s.MemCache < 0 || s.DiskTotal < 0 || s.DiskUsed < 0 {
			return errors.New("a sample has a negative number")
		}
	}
	return nil
}

func (f *FileStat) Validate() error {
	if f.Follow && f.NoFollow {
		return errors.New("follow and no_follow exclude each other")
	}
	return checkSessionPath(f.SessionID, f.Path, f.WaitMS)
}

func (f *FilePath) Validate() error { return checkSessionPath(f.SessionID, f.Path, f.WaitMS) }

func (f *FileDelete) Validate() error { return checkSessionPath(f.SessionID, f.Path, f.WaitMS) }

func (f *FileList) Validate() error {
	if f.Depth < 1 || f.Depth > 1000 {
		return errors.New("depth must be 1 to 1000")
	}
	return checkSessionPath(f.SessionID, f.Path, f.WaitMS)
}

func (f *FileMove) Validate() error {
	return errors.Join(checkSessionPath(f.SessionID, f.Src, f.WaitMS), checkText("dst", f.Dst, MaxPath))
}

func (f *FileStatResponse) Validate() error {
	if f.Exists != (f.Entry != nil) {
		return errors.New("entry must be there exactly when exists is true")
	}
	if f.Entry != nil {
		return errors.Join(f.Entry.check(), checkText("path", f.Path, 2*MaxPath))
	}
	return checkText("path", f.Path, 2*MaxPath)
}

func (f *FileListResponse) Validate() error {
	if len(f.Entries) > MaxListEntries {
		return fmt.Errorf("entries has %d, at most %d are allowed", len(f.Entries), MaxListEntries)
	}
	for i := range f.Entries {
		if err := f.Entries[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Entry) check() error {
	if e.Kind != "file" && e.Kind != "dir" && e.Kind != "other" {
		return errors.New("kind must be file, dir or other")
	}
	if e.Size < 0 {
		return errors.New("size must not be negative")
	}
	return errors.Join(checkText("name", e.Name, MaxPath), checkText("path", e.Path, 2*MaxPath), checkMetadata(e.Metadata))
}
