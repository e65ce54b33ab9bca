package autogpt

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"path"
	"regexp"
	"strings"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// silent is a job whose handler sends nothing before its last frame.
type silent struct{}

func (silent) send(wire.Type, wire.Payload) error { return nil }

// ack is a job that gives nothing back.
type ack struct{ silent }

func (ack) reply(wire.Payload) (msg.Type, wire.Payload, error) {
	return msg.TypeAck, &msg.Ack{OK: true}, nil
}

// readJob is FILE_READ.
type readJob struct {
	place
	p    *msg.FileRead
	most int64
	size int64 // of the whole file
	got  bytes.Buffer
}

func newRead(at place, p *msg.FileRead, fileSize int64) (*readJob, error) {
	j := &readJob{place: at, p: p, most: min(fileSize, msg.MaxText)}
	if p.AsBase64() {
		j.most = min(fileSize, msg.MaxBase64)
	}
	if p.Length != nil && *p.Length > j.most {
		return nil, j.tooLarge()
	}
	return j, nil
}

func (j *readJob) tooLarge() error {
	return wire.Errorf(msg.CodeTooLarge, "At most %d bytes can be read at once. Read the file in parts, with offset and length.", j.most)
}

func (j *readJob) request() (wire.Type, wire.Payload) {
	return wire.TypeFileRead, &wire.FileRead{SessionID: j.session, Path: j.to(j.p.Path), Offset: j.p.Offset, Length: j.p.Length}
}

func (j *readJob) send(_ wire.Type, p wire.Payload) error {
	switch p := p.(type) {
	case *wire.FileContents:
		j.size = p.Size
		if p.Length > j.most {
			return j.tooLarge()
		}
	case *wire.FileChunk:
		if int64(j.got.Len()+len(p.Data)) > j.most {
			return j.tooLarge()
		}
		j.got.Write(p.Data)
	}
	return nil
}

func (j *readJob) reply(wire.Payload) (msg.Type, wire.Payload, error) {
	n := int64(j.got.Len())
	r := &msg.FileContents{Encoding: msg.UTF8, Size: n, Truncated: j.p.Offset+n < j.size}
	if j.p.AsBase64() {
		r.Encoding, r.Content = msg.Base64, base64.StdEncoding.EncodeToString(j.got.Bytes())
	} else {
		r.Content = text(j.got.Bytes())
	}
	return msg.TypeFileContents, r, nil
}

// writeJob is FILE_WRITE.
type writeJob struct {
	ack
	place
	path    string
	parents bool
	data    []byte
	free    func()
}

func newWrite(at place, p *msg.FileWrite, fileSize int64) (*writeJob, error) {
	j := &writeJob{place: at, path: p.Path, parents: p.CreateParents, data: []byte(p.Content), free: func() {}}
	if p.Encoding == msg.Base64 {
		var err error
		if j.data, err = base64.StdEncoding.DecodeString(p.Content); err != nil || strings.ContainsAny(p.Content, "\r\n") {
			return nil, wire.Errorf(msg.CodeInternal, "The content is not base64 of the standard alphabet, with padding.")
		}
	}
	if int64(len(j.data)) > fileSize {
		return nil, wire.Errorf(msg.CodeTooLarge, "The file is larger than the %d bytes that may be written at once.", fileSize)
	}
	return j, nil
}

func (j *writeJob) body() ([]byte, func()) {
	data := j.data
	j.data = nil
	return data, j.free
}

func (j *writeJob) request() (wire.Type, wire.Payload) {
	return wire.TypeFileWrite, &wire.FileWrite{SessionID: j.session, Path: j.to(j.path), NoParents: !j.parents}
}

// statJob is FILE_STAT.
type statJob struct {
	silent
	place
	p *msg.FileStat
}

func (j *statJob) request() (wire.Type, wire.Payload) {
	return wire.TypeFileStat, &wire.FileStat{SessionID: j.session, Path: j.to(j.p.Path), Follow: j.p.FollowSymlinks, NoFollow: !j.p.FollowSymlinks}
}

func (j *statJob) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	stat, ok := p.(*wire.FileStatResponse)
	if !ok {
		return "", nil, fmt.Errorf("FILE_STAT was answered with a %T", p)
	}
	r := &msg.FileStatResponse{Exists: stat.Exists}
	if stat.Path != "" {
		r.Path = new(j.from(stat.Path))
	}
	if e := stat.Entry; e != nil {
		r.IsFile, r.IsDir, r.IsSymlink = new(e.Kind == "file"), new(e.Kind == "dir"), new(e.LinkTarget != "")
		r.Size, r.MTime, r.Mode = new(e.Size), new(unix(e.MTime)), new(fmt.Sprintf("%04o", e.Mode&0o7777))
		r.UID, r.GID, r.Path = e.UID, e.GID, new(j.from(e.Path))
		if e.CTime != 0 {
			r.CTime = new(unix(e.CTime))
		}
		if e.Kind == "file" {
			r.MIMEType = mimeType(e.Name)
		}
	}
	return msg.TypeFileStatResponse, r, nil
}

func mimeType(name string) *string {
	kind, _, _ := strings.Cut(mime.TypeByExtension(strings.ToLower(path.Ext(name))), ";")
	if kind == "" {
		return nil
	}
	return &kind
}

// unix is milliseconds as seconds.
func unix(ms int64) float64 { return float64(ms) / 1000 }

// listJob is FILE_LIST.
type listJob struct {
	place
	p       *msg.FileList
	glob    *regexp.Regexp // nil: all names
	most    int
	seen    int
	cost    int
	entries []msg.Entry
	more    bool
}

// A listing goes on to its end, uncounted, unless very much is left.
const (
	maxSeen     = 100_000
	maxListCost = 12 << 20 // bytes of JSON
)

func newList(at place, p *msg.FileList) (*listJob, error) {
	j := &listJob{place: at, p: p, most: int(min(max(p.MaxEntries, 1), msg.MaxEntries))}
	if p.Glob != nil {
		if len(*p.Glob) > 1024 {
			return nil, wire.Errorf(msg.CodeInternal, "The pattern is too long.")
		}
		j.glob = globPattern(*p.Glob)
	}
	return j, nil
}

func (j *listJob) request() (wire.Type, wire.Payload) {
	depth := 1
	if j.p.Recursive {
		depth = 1000
	}
	return wire.TypeFileList, &wire.FileList{SessionID: j.session, Path: j.to(j.p.Path), Depth: depth}
}

// errEnough ends a listing of which no more is told.
var errEnough = wire.Errorf(wire.CodeCancelled, "More is in the folder than is listed at once.")

func (j *listJob) send(_ wire.Type, p wire.Payload) error {
	list, ok := p.(*wire.FileListResponse)
	if !ok {
		return nil
	}
	j.seen += len(list.Entries)
	for _, e := range list.Entries {
		if j.more {
			break
		}
		if !j.p.IncludeHidden && strings.HasPrefix(e.Name, ".") || j.glob != nil && !j.glob.MatchString(e.Name) {
			continue
		}
		cost := 256 + 6*(len(e.Name)+len(e.Path)+len(j.root))
		if len(j.entries) == j.most || j.cost+cost > maxListCost {
			j.more = true
			break
		}
		j.cost += cost
		j.entries = append(j.entries, msg.Entry{Name: e.Name, Path: j.from(e.Path), IsFile: e.Kind == "file", IsDir: e.Kind == "dir",
			IsSymlink: e.LinkTarget != "", Size: new(e.Size), MTime: new(unix(e.MTime))})
	}
	if j.more && j.seen > maxSeen {
		return errEnough
	}
	return nil
}

func (j *listJob) reply(wire.Payload) (msg.Type, wire.Payload, error) {
	return msg.TypeFileListResponse, &msg.FileListResponse{Entries: j.entries, Truncated: j.more}, nil
}

// deleteJob is FILE_DELETE.
type deleteJob struct {
	ack
	place
	p *msg.FileDelete
}

func (j *deleteJob) request() (wire.Type, wire.Payload) {
	return wire.TypeFileDelete, &wire.FileDelete{SessionID: j.session, Path: j.to(j.p.Path), OnlyEmpty: !j.p.Recursive, MustExist: !j.p.MissingOK}
}

// moveJob is FILE_MOVE.
type moveJob struct {
	ack
	place
	p *msg.FileMove
}

func (j *moveJob) request() (wire.Type, wire.Payload) {
	return wire.TypeFileMove, &wire.FileMove{SessionID: j.session, Src: j.to(j.p.Src), Dst: j.to(j.p.Dst), NoReplace: !j.p.Overwrite, NoParents: true}
}
