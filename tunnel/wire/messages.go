package wire

import (
	"path"
	"strings"
)

// The messages. Machine M, hub H; "->" lists what may answer.
const (
	TypeHello    Type = "HELLO"     // M to H, first frame of every connection
	TypeHelloAck Type = "HELLO_ACK" // H to M, first frame back, same id
	// TypeAuthorize carries a fresh access token, before the one that the
	// connection was made with expires. M to H, never answered.
	TypeAuthorize Type = "AUTHORIZE"
	TypeStatus    Type = "STATUS" // M to H, unsolicited, never answered
	TypePing      Type = "PING"   // H to M -> PONG; outside admission
	TypePong      Type = "PONG"
	TypeCancel    Type = "CANCEL" // H to M, same id as the request it ends; the request still answers
	TypeCredit    Type = "CREDIT" // receiver of data frames to their sender, same id
	// TypeBulk says that what its sender still has to say of this request comes
	// over a stream of the bulk socket that names the same id. Both ways, once
	// each; only after HELLO_ACK offered the bulk socket, and it is joined.
	TypeBulk  Type = "BULK"
	TypeAck   Type = "ACK"
	TypeError Type = "ERROR"

	TypeSessionOpen   Type = "SESSION_OPEN"   // H to M -> SESSION_OPENED
	TypeSessionOpened Type = "SESSION_OPENED" // M to H
	TypeSessionTTL    Type = "SESSION_TTL"    // H to M -> ACK
	TypeSessionClose  Type = "SESSION_CLOSE"  // H to M -> ACK; outside admission
	TypeSessionEnded  Type = "SESSION_ENDED"  // M to H, unsolicited: ended here
	// TypeSessionPause stops the session's processes where they are, and refuses
	// its requests as PAUSED; TypeSessionResume lets all of it go on. Neither
	// minds that it is so already. Outside admission.
	TypeSessionPause  Type = "SESSION_PAUSE"  // H to M -> ACK
	TypeSessionResume Type = "SESSION_RESUME" // H to M -> ACK

	TypeMetrics         Type = "METRICS" // H to M -> METRICS_RESPONSE
	TypeMetricsResponse Type = "METRICS_RESPONSE"

	TypeProcessStart   Type = "PROCESS_START"   // H to M -> PROCESS_STARTED, PROCESS_OUTPUT*, PROCESS_EXITED
	TypeProcessStarted Type = "PROCESS_STARTED" // after the approval
	TypeProcessOutput  Type = "PROCESS_OUTPUT"
	TypeProcessExited  Type = "PROCESS_EXITED"
	TypeProcessSignal  Type = "PROCESS_SIGNAL" // H to M -> ACK; outside admission
	TypeProcessInput   Type = "PROCESS_INPUT"  // H to M, same id as the PROCESS_START; data; never answered
	TypeProcessResize  Type = "PROCESS_RESIZE" // H to M, same id as the PROCESS_START; never answered

	TypeFileRead         Type = "FILE_READ"          // H to M -> FILE_CONTENTS, FILE_CHUNK*, ACK
	TypeFileContents     Type = "FILE_CONTENTS"      // what follows: size
	TypeFileChunk        Type = "FILE_CHUNK"         // data, both ways
	TypeFileWrite        Type = "FILE_WRITE"         // H to M, then FILE_CHUNK* by H -> FILE_STAT_RESPONSE
	TypeFileStat         Type = "FILE_STAT"          // H to M -> FILE_STAT_RESPONSE
	TypeFileStatResponse Type = "FILE_STAT_RESPONSE" // one entry
	TypeFileList         Type = "FILE_LIST"          // H to M -> FILE_LIST_RESPONSE*, ACK
	TypeFileListResponse Type = "FILE_LIST_RESPONSE"
	TypeFileMkdir        Type = "FILE_MKDIR"  // H to M -> FILE_STAT_RESPONSE
	TypeFileDelete       Type = "FILE_DELETE" // H to M -> ACK
	TypeFileMove         Type = "FILE_MOVE"   // H to M -> FILE_STAT_RESPONSE
	// TypeFileWatch reports changes until CANCEL, or until the watched directory
	// has gone (then ACK ends it).
	TypeFileWatch          Type = "FILE_WATCH"    // H to M -> FILE_WATCHING, FILE_CHANGES*, ACK
	TypeFileWatching       Type = "FILE_WATCHING" // what changes from now on is reported
	TypeFileChanges        Type = "FILE_CHANGES"
	TypeFileSearch         Type = "FILE_SEARCH" // H to M -> FILE_SEARCH_RESPONSE
	TypeFileSearchResponse Type = "FILE_SEARCH_RESPONSE"
)

type kind struct {
	dir      Direction
	make     func() Payload
	terminal bool
	replies  []Type
}

var kinds = map[Type]kind{
	TypeHello:     {dir: ToHub, make: func() Payload { return new(Hello) }},
	TypeHelloAck:  {dir: ToMachine, make: func() Payload { return new(HelloAck) }},
	TypeAuthorize: {dir: ToHub, make: func() Payload { return new(Authorize) }},
	TypeStatus:    {dir: ToHub, make: func() Payload { return new(Status) }},
	TypePing:      {dir: ToMachine, make: func() Payload { return new(Empty) }, replies: []Type{TypePong}},
	TypePong:      {dir: ToHub, make: func() Payload { return new(Empty) }, terminal: true},
	TypeCancel:    {dir: ToMachine, make: func() Payload { return new(Empty) }},
	TypeCredit:    {dir: BothWays, make: func() Payload { return new(Credit) }},
	TypeBulk:      {dir: BothWays, make: func() Payload { return new(Empty) }},
	TypeAck:       {dir: ToHub, make: func() Payload { return new(Empty) }, terminal: true},
	TypeError:     {dir: ToHub, make: func() Payload { return new(ErrorPayload) }, terminal: true},

	TypeSessionOpen:   {dir: ToMachine, make: func() Payload { return new(SessionOpen) }, replies: []Type{TypeSessionOpened}},
	TypeSessionOpened: {dir: ToHub, make: func() Payload { return new(SessionOpened) }, terminal: true},
	TypeSessionTTL:    {dir: ToMachine, make: func() Payload { return new(SessionTTL) }, replies: []Type{TypeAck}},
	TypeSessionClose:  {dir: ToMachine, make: func() Payload { return new(SessionRef) }, replies: []Type{TypeAck}},
	TypeSessionEnded:  {dir: ToHub, make: func() Payload { return new(SessionEnded) }},
	TypeSessionPause:  {dir: ToMachine, make: func() Payload { return new(SessionRef) }, replies: []Type{TypeAck}},
	TypeSessionResume: {dir: ToMachine, make: func() Payload { return new(SessionRef) }, replies: []Type{TypeAck}},

	TypeMetrics:         {dir: ToMachine, make: func() Payload { return new(Metrics) }, replies: []Type{TypeMetricsResponse}},
	TypeMetricsResponse: {dir: ToHub, make: func() Payload { return new(MetricsResponse) }, terminal: true},

	TypeProcessStart:   {dir: ToMachine, make: func() Payload { return new(ProcessStart) }, replies: []Type{TypeProcessStarted, TypeProcessOutput, TypeProcessExited}},
	TypeProcessStarted: {dir: ToHub, make: func() Payload { return new(ProcessStarted) }},
	TypeProcessOutput:  {dir: ToHub, make: func() Payload { return new(ProcessOutput) }},
	TypeProcessExited:  {dir: ToHub, make: func() Payload { return new(ProcessExited) }, terminal: true},
	TypeProcessSignal:  {dir: ToMachine, make: func() Payload { return new(ProcessSignal) }, replies: []Type{TypeAck}},
	TypeProcessInput:   {dir: ToMachine, make: func() Payload { return new(ProcessInput) }},
	TypeProcessResize:  {dir: ToMachine, make: func() Payload { return new(TerminalSize) }},

	TypeFileRead:         {dir: ToMachine, make: func() Payload { return new(FileRead) }, replies: []Type{TypeFileContents, TypeFileChunk, TypeAck}},
	TypeFileContents:     {dir: ToHub, make: func() Payload { return new(FileContents) }},
	TypeFileChunk:        {dir: BothWays, make: func() Payload { return new(FileChunk) }},
	TypeFileWrite:        {dir: ToMachine, make: func() Payload { return new(FileWrite) }, replies: []Type{TypeFileStatResponse}},
	TypeFileStat:         {dir: ToMachine, make: func() Payload { return new(FileStat) }, replies: []Type{TypeFileStatResponse}},
	TypeFileStatResponse: {dir: ToHub, make: func() Payload { return new(FileStatResponse) }, terminal: true},
	TypeFileList:         {dir: ToMachine, make: func() Payload { return new(FileList) }, replies: []Type{TypeFileListResponse, TypeAck}},
	TypeFileListResponse: {dir: ToHub, make: func() Payload { return new(FileListResponse) }},
	TypeFileMkdir:        {dir: ToMachine, make: func() Payload { return new(FilePath) }, replies: []Type{TypeFileStatResponse}},
	TypeFileDelete:       {dir: ToMachine, make: func() Payload { return new(FileDelete) }, replies: []Type{TypeAck}},
	TypeFileMove:         {dir: ToMachine, make: func() Payload { return new(FileMove) }, replies: []Type{TypeFileStatResponse}},

	TypeFileWatch:          {dir: ToMachine, make: func() Payload { return new(FileWatch) }, replies: []Type{TypeFileWatching, TypeFileChanges, TypeAck}},
	TypeFileWatching:       {dir: ToHub, make: func() Payload { return new(Empty) }},
	TypeFileChanges:        {dir: ToHub, make: func() Payload { return new(FileChanges) }},
	TypeFileSearch:         {dir: ToMachine, make: func() Payload { return new(FileSearch) }, replies: []Type{TypeFileSearchResponse}},
	TypeFileSearchResponse: {dir: ToHub, make: func() Payload { return new(FileSearchResponse) }, terminal: true},
}

// Empty is a payload without fields.
type Empty struct{}

// Hello introduces a machine.
type Hello struct {
	Software     string   `json:"software"`         // "localpc/<version>"
	Protocol     string   `json:"protocol_version"` // major.minor
	MachineID    string   `json:"machine_id"`
	DisplayName  string   `json:"display_name"`
	Platform     string   `json:"platform"` // runtime.GOOS
	Arch         string   `json:"arch"`     // runtime.GOARCH
	Capabilities []string `json:"capabilities"`
	// Sessions are the ids of the sessions open here; the hub ends the others.
	Sessions []string    `json:"sessions"`
	Record   *RecordHead `json:"record,omitempty"`
}

// RecordHead is the newest entry of the machine's record: a witness away from
// the machine, so that a shortened record is noticed.
type RecordHead struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"` // 64 hex digits
}

// HelloAck accepts a machine.
type HelloAck struct {
	Protocol     string `json:"protocol_version"`
	ConnectionID string `json:"connection_id"`
	HubName      string `json:"hub_name"` // shown to the person, at most MaxText bytes
	// Account is the name of whose machine it is at the hub, likewise shown; ""
	// where nobody logs in.
	Account string `json:"account,omitempty"`
	// Bulk: this hub takes a second socket for data, at BulkPath.
	Bulk bool `json:"bulk,omitempty"`
}

// Authorize proves the machine's sign-in again. It must be the sign-in that the
// connection was made with; the hub ends it with 4401 otherwise, and when the
// newest token expires.
type Authorize struct {
	Token string `json:"token"`
}

// Status tells the hub how busy the machine is: 30 s after the handshake,
// every 30 s, and after a reply that freed a slot at full load.
type Status struct {
	InFlight      int         `json:"in_flight"`
	MaxConcurrent int         `json:"max_concurrent"`
	Waiting       int         `json:"waiting"` // requests that wait for the person
	UptimeSeconds float64     `json:"uptime_seconds"`
	Record        *RecordHead `json:"record,omitempty"`
}

// Credit lets the sender of data frames of this request send Bytes more.
type Credit struct {
	Bytes int `json:"bytes"`
}

// ErrorPayload is a failed request.
type ErrorPayload struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// SessionOpen asks the person for a session.
type SessionOpen struct {
	SessionID string `json:"session_id"`
	// PrincipalID and PrincipalName are what the hub proved by a key.
	PrincipalID   string `json:"principal_id"`
	PrincipalName string `json:"principal_name"`
	// Agent and Title are what the program says of itself; they grant nothing.
	Agent string `json:"agent,omitempty"`
	Title string `json:"title,omitempty"`
	// Folder is a wish; the person chooses. With FolderOnly it is the only one
	// that they can choose.
	Folder     string `json:"folder,omitempty"`
	FolderOnly bool   `json:"folder_only,omitempty"`
	// TTLSeconds counts from the approval.
	TTLSeconds int `json:"ttl_seconds"`
	// Env is set for every process of the session.
	Env map[string]string `json:"env,omitempty"`
	// WaitMS is how long the person has, counted from now.
	WaitMS int `json:"wait_ms"`
}

// SessionOpened says what the person chose.
type SessionOpened struct {
	Folder string `json:"folder"` // the folder's own path on the machine
	Mode   string `json:"mode"`   // look, work, ask
	// TTLSeconds is what is left now.
	TTLSeconds int `json:"ttl_seconds"`
}

// SessionTTL sets what is left of a session, counted from now.
type SessionTTL struct {
	SessionID  string `json:"session_id"`
	TTLSeconds int    `json:"ttl_seconds"`
}

// SessionRef names a session.
type SessionRef struct {
	SessionID string `json:"session_id"`
}

// SessionEnded tells that a session ended on the machine's side.
type SessionEnded struct {
	SessionID string `json:"session_id"`
	Reason    string `json:"reason"` // one sentence
}

// ProcessStart runs one program.
type ProcessStart struct {
	SessionID string            `json:"session_id"`
	Cmd       string            `json:"cmd"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Cwd       string            `json:"cwd,omitempty"` // "" is the session's folder
	// CwdInside refuses a working directory outside of the session's folder
	// (PATH_OUTSIDE_ALLOWED_ROOT), one that links lead out to as well.
	CwdInside bool `json:"cwd_inside,omitempty"`
	// TimeoutMS ends the whole process tree; it counts from the start. 0 is none.
	TimeoutMS int `json:"timeout_ms,omitempty"`
	// GraceMS is how long the tree has to end by itself at its limit, from
	// SIGTERM to SIGKILL; 0 is SIGKILL at once.
	GraceMS int `json:"grace_ms,omitempty"`
	// Stdin keeps standard input open for PROCESS_INPUT; otherwise it is empty.
	Stdin bool `json:"stdin,omitempty"`
	// PTY runs the program at a terminal of that size: all output is of the
	// stream "pty", and it takes PROCESS_INPUT and PROCESS_RESIZE.
	PTY    *TerminalSize `json:"pty,omitempty"`
	WaitMS int           `json:"wait_ms"`
}

// TerminalSize is in characters; it is the payload of PROCESS_RESIZE, too.
type TerminalSize struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// ProcessInput is a piece of what a process reads, at most MaxChunk bytes, in
// order. It counts against credit as a chunk of a file does.
type ProcessInput struct {
	Data []byte `json:"data,omitempty"`
	End  bool   `json:"end,omitempty"` // closes standard input; a terminal gets its end-of-file character
}

// ProcessStarted follows the approval.
type ProcessStarted struct {
	PID int `json:"pid"` // unique on the machine while the process lives
}

// ProcessOutput is a piece of output, at most MaxChunk bytes.
type ProcessOutput struct {
	Stream string `json:"stream"` // stdout, stderr, pty
	Data   []byte `json:"data"`
}

// ProcessExited ends a process.
type ProcessExited struct {
	ExitCode  int    `json:"exit_code"`        // -1 when ended by a signal
	Signal    string `json:"signal,omitempty"` // "killed", as package syscall names it
	TimedOut  bool   `json:"timed_out,omitempty"`
	Truncated bool   `json:"truncated,omitempty"` // output was left out because its reader stalled
	Running   int    `json:"running,omitempty"`   // children that still run
}

// ProcessSignal ends a process that this session started, and its children.
type ProcessSignal struct {
	SessionID string `json:"session_id"`
	PID       int    `json:"pid"`
	Signal    string `json:"signal"` // SIGTERM, SIGKILL
}

// FileRead reads a regular file.
type FileRead struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	Offset    int64  `json:"offset,omitempty"`
	Length    *int64 `json:"length,omitempty"` // null: to the end
	WaitMS    int    `json:"wait_ms"`
}

// FileContents opens the reply to FILE_READ.
type FileContents struct {
	Size   int64 `json:"size"`   // of the whole file
	Length int64 `json:"length"` // of what follows
	MTime  int64 `json:"mtime_ms"`
}

// FileChunk is a piece of a file, at most MaxChunk bytes, in order.
type FileChunk struct {
	Data []byte `json:"data"`
	Last bool   `json:"last,omitempty"` // of an upload
}

// FileWrite replaces or creates a file with the chunks that follow. Parents
// are created, but with NoParents (then a missing one is PATH_NOT_FOUND). The
// person is asked, if at all, after the last chunk came.
type FileWrite struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	NoParents bool   `json:"no_parents,omitempty"`
	// Metadata is kept with the file, in place of what was there: extended
	// attributes user.e2b.NAME.
	Metadata map[string]string `json:"metadata,omitempty"`
	WaitMS   int               `json:"wait_ms"`
}

// FileStat looks at one name. Of a symbolic link the entry is the link's own,
// with the kind of what it leads to; with NoFollow the kind is the link's too
// (other), and with Follow all of it is that of what it leads to. Either of
// them, not both, makes the reply's paths say where the name really is: links
// in the folders above it are resolved.
type FileStat struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	NoFollow  bool   `json:"no_follow,omitempty"`
	Follow    bool   `json:"follow,omitempty"`
	WaitMS    int    `json:"wait_ms"`
}

// FilePath names one path: FILE_MKDIR.
type FilePath struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	WaitMS    int    `json:"wait_ms"`
}

// FileDelete removes a name: a link itself, a directory with all that is in
// it. Nothing there is no error.
type FileDelete struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	// OnlyEmpty refuses a directory that is not empty (PATH_NOT_EMPTY).
	OnlyEmpty bool `json:"only_empty,omitempty"`
	// MustExist makes nothing there an error (PATH_NOT_FOUND).
	MustExist bool `json:"must_exist,omitempty"`
	WaitMS    int  `json:"wait_ms"`
}

// FileList lists a directory down to Depth levels (1 is its own entries).
type FileList struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	Depth     int    `json:"depth"`
	WaitMS    int    `json:"wait_ms"`
}

// FileMove renames; an existing file at Dst is replaced, and parents of Dst
// are created.
type FileMove struct {
	SessionID string `json:"session_id"`
	Src       string `json:"src"`
	Dst       string `json:"dst"`
	// NoReplace refuses where anything is at Dst (PATH_EXISTS), Src itself too.
	NoReplace bool `json:"no_replace,omitempty"`
	// NoParents refuses where a parent of Dst is missing (PATH_NOT_FOUND).
	NoParents bool `json:"no_parents,omitempty"`
	WaitMS    int  `json:"wait_ms"`
}

// Entry describes one path, in the form of name that was asked with.
type Entry struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Kind  string `json:"kind"` // file, dir, other (a link's target's; dangling links, pipes and devices are other)
	Size  int64  `json:"size"`
	Mode  uint32 `json:"mode"` // permission bits, 0..07777
	Owner string `json:"owner,omitempty"`
	Group string `json:"group,omitempty"`
	MTime int64  `json:"mtime_ms"`
	// CTime, UID and GID are in replies to FILE_STAT only, where known.
	CTime int64 `json:"ctime_ms,omitempty"`
	UID   *int  `json:"uid,omitempty"`
	GID   *int  `json:"gid,omitempty"`
	// LinkTarget is set for a symbolic link.
	LinkTarget string `json:"link_target,omitempty"`
	// Metadata as FileWrite has it; in replies about one name, and in lists.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// FileWatch asks for what changes in a directory.
type FileWatch struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	Recursive bool   `json:"recursive,omitempty"`
	Entries   bool   `json:"entries,omitempty"` // with each change, what is there then
	WaitMS    int    `json:"wait_ms"`
}

// FileChanges are changes, in order.
type FileChanges struct {
	Changes []FileChange `json:"changes"`
	// Overflow: more changed than could be told; who must know looks at the
	// directory anew.
	Overflow bool `json:"overflow,omitempty"`
}

// FileChange is one change.
type FileChange struct {
	Op    string `json:"op"`   // create, write, remove, rename (the old name), chmod
	Name  string `json:"name"` // relative to the watched directory
	Entry *Entry `json:"entry,omitempty"`
}

// FileSearch looks through a directory and all below it. Links are not
// followed, and files that are not text are searched by name only.
type FileSearch struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	// Name is a glob of doublestar's syntax on the path below Path ("**/*.go");
	// "" is every name.
	Name string `json:"name,omitempty"`
	// Text is looked for in each line; a regular expression of RE2's syntax with
	// Regexp. "" finds names only.
	Text       string `json:"text,omitempty"`
	Regexp     bool   `json:"regexp,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Max        int    `json:"max"` // hits, 1 to MaxSearch
	WaitMS     int    `json:"wait_ms"`
}

// FileSearchResponse is what was found, in order of path and line.
type FileSearchResponse struct {
	Hits []Hit `json:"hits"`
	// More: there is more than Max, or than could be looked at in the time.
	More bool `json:"more,omitempty"`
}

// Hit is one name, or one line of a file.
type Hit struct {
	Path string `json:"path"`
	Kind string `json:"kind"`           // as Entry has it
	Line int    `json:"line,omitempty"` // from 1; 0: the name is the hit
	Text string `json:"text,omitempty"` // of the line, at most 500 bytes, cut at a character
}

// Metrics asks how busy the machine is, and was between two times (Unix
// seconds; 0: no bound).
type Metrics struct {
	SessionID string `json:"session_id"`
	Start     int64  `json:"start,omitempty"`
	End       int64  `json:"end,omitempty"`
}

// MetricsResponse has samples in order of time, the last taken now unless End
// is before that.
type MetricsResponse struct {
	Samples []Sample `json:"samples"`
}

// Sample is the whole machine's load at one moment. Sizes are bytes; the disk
// is the one of the session's folder.
type Sample struct {
	Time       int64   `json:"time"` // Unix seconds
	CPUs       int     `json:"cpus"`
	CPUPercent float64 `json:"cpu_percent"` // of all CPUs together, 0 to 100
	MemTotal   int64   `json:"mem_total"`
	MemUsed    int64   `json:"mem_used"`
	MemCache   int64   `json:"mem_cache"`
	DiskTotal  int64   `json:"disk_total"`
	DiskUsed   int64   `json:"disk_used"`
}

// FileStatResponse is one entry, or none.
type FileStatResponse struct {
	Exists bool   `json:"exists"`
	Entry  *Entry `json:"entry,omitempty"`
	// Path is where a name leads at which nothing is; only with Follow or
	// NoFollow.
	Path string `json:"path,omitempty"`
}

// FileListResponse is some entries, in order of path. ACK follows the last.
type FileListResponse struct {
	Entries []Entry `json:"entries"`
}

// EffectiveArg0 is the base name of the program, for titles.
func (p *ProcessStart) EffectiveArg0() string { return path.Base(strings.TrimSpace(p.Cmd)) }
