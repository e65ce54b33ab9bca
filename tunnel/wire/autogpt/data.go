package autogpt

import (
	"errors"
	"fmt"
	"slices"
)

// Encodings of contents.
const (
	UTF8   = "utf-8"
	Base64 = "base64"
)

// Execute runs a command. Exactly one of Command and Argv is set; a machine
// answers anything else with INTERNAL_ERROR.
type Execute struct {
	Command *string  `json:"command,omitempty"` // shell text
	Argv    []string `json:"argv,omitempty"`    // without a shell
	Shell   string   `json:"shell"`             // auto, bash, sh, zsh, pwsh, powershell, cmd; with Command alone
	Cwd     *string  `json:"cwd,omitempty"`     // nil: the chat's folder
	Timeout *int64   `json:"timeout_seconds,omitempty"`
	Env     Map      `json:"env"`
}

var shells = []string{"auto", "bash", "sh", "zsh", "pwsh", "powershell", "cmd"}

func (e *Execute) Validate() error {
	if e.Timeout != nil && *e.Timeout < 1 {
		return errors.New("timeout_seconds must be positive")
	}
	return checkOne("shell", e.Shell, shells...)
}

// Result is COMMAND_RESULT.
type Result struct {
	Stdout   string  `json:"stdout" need:"yes"`
	Stderr   string  `json:"stderr" need:"yes"`
	ExitCode int     `json:"exit_code" need:"yes"` // minus the signal's number; -1 if unknown
	TimedOut bool    `json:"timed_out" need:"yes"`
	Duration float64 `json:"duration_seconds" need:"yes"`
	// Truncated output ends, in Stderr, with TruncationMark.
	Truncated bool `json:"output_truncated"`
}

// TruncationMark ends the stderr of a command whose output was cut.
const TruncationMark = "\n[command output truncated]\n"

func (*Result) Validate() error { return nil }

// FileRead reads a range of a file.
type FileRead struct {
	Path     string `json:"path" need:"yes"`
	Encoding string `json:"encoding"` // UTF8, Base64
	Format   string `json:"format"`   // text, bytes
	Offset   int64  `json:"offset"`
	Length   *int64 `json:"length,omitempty"` // nil: the rest
}

// AsBase64 tells which way the contents are answered.
func (f *FileRead) AsBase64() bool { return f.Encoding == Base64 || f.Format == "bytes" }

func (f *FileRead) Validate() error {
	if f.Offset < 0 || f.Length != nil && *f.Length < 1 {
		return errors.New("offset must not be negative, length must be positive")
	}
	return errors.Join(checkOne("encoding", f.Encoding, UTF8, Base64), checkOne("format", f.Format, "text", "bytes"))
}

// FileContents is a range of a file.
type FileContents struct {
	Content   string `json:"content" need:"yes"`
	Encoding  string `json:"encoding" need:"yes"`
	Size      int64  `json:"size_bytes" need:"yes"` // of what is returned
	Truncated bool   `json:"truncated" need:"yes"`  // there is more after it
}

func (f *FileContents) Validate() error { return checkOne("encoding", f.Encoding, UTF8, Base64) }

// FileWrite writes a whole file.
type FileWrite struct {
	Path          string `json:"path" need:"yes"`
	Content       string `json:"content" need:"yes"`
	Encoding      string `json:"encoding"`
	CreateParents bool   `json:"create_parents"`
}

func (f *FileWrite) Validate() error { return checkOne("encoding", f.Encoding, UTF8, Base64) }

// FileStat describes a path.
type FileStat struct {
	Path           string `json:"path" need:"yes"`
	FollowSymlinks bool   `json:"follow_symlinks"`
}

func (*FileStat) Validate() error { return nil }

// FileStatResponse describes a path; when it is not there all but Exists, and
// perhaps Path, are nil.
type FileStatResponse struct {
	Exists    bool     `json:"exists" need:"yes"`
	IsFile    *bool    `json:"is_file"`
	IsDir     *bool    `json:"is_dir"`
	IsSymlink *bool    `json:"is_symlink"` // of the path as sent
	Size      *int64   `json:"size_bytes"`
	MTime     *float64 `json:"mtime"` // Unix seconds
	CTime     *float64 `json:"ctime"`
	Mode      *string  `json:"mode"` // "0640"
	UID       *int     `json:"owner_uid"`
	GID       *int     `json:"owner_gid"`
	MIMEType  *string  `json:"mime_type"` // by the name
	Path      *string  `json:"path"`      // canonical
}

func (*FileStatResponse) Validate() error { return nil }

// FileList lists a directory.
type FileList struct {
	Path          string  `json:"path" need:"yes"`
	Glob          *string `json:"glob,omitempty"` // on the base name
	Recursive     bool    `json:"recursive"`
	IncludeHidden bool    `json:"include_hidden"`
	MaxEntries    int64   `json:"max_entries"` // clamped to 1..MaxEntries by the machine
}

func (*FileList) Validate() error { return nil }

// FileListResponse is what a directory has.
type FileListResponse struct {
	Entries   List[Entry] `json:"entries" need:"yes"`
	Truncated bool        `json:"truncated" need:"yes"` // maybe there is more
}

// Entry is one name in a directory. IsFile and IsDir follow links, Size and
// MTime do not.
type Entry struct {
	Name      string   `json:"name"`
	Path      string   `json:"path"`
	IsFile    bool     `json:"is_file"`
	IsDir     bool     `json:"is_dir"`
	IsSymlink bool     `json:"is_symlink"`
	Size      *int64   `json:"size_bytes"`
	MTime     *float64 `json:"mtime"`
}

func (*FileListResponse) Validate() error { return nil }

// FileDelete deletes a path.
type FileDelete struct {
	Path      string `json:"path" need:"yes"`
	Recursive bool   `json:"recursive"`
	MissingOK bool   `json:"missing_ok"`
}

func (*FileDelete) Validate() error { return nil }

// FileMove renames a path.
type FileMove struct {
	Src       string `json:"src" need:"yes"`
	Dst       string `json:"dst" need:"yes"`
	Overwrite bool   `json:"overwrite"`
}

func (*FileMove) Validate() error { return nil }

func checkOne(field, s string, of ...string) error {
	if !slices.Contains(of, s) {
		return fmt.Errorf("%s has a value that is not known", field)
	}
	return nil
}
