package e2b

import (
	"context"
	"io/fs"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"localpc/tunnel/hub/e2b/filesystem"
	"localpc/tunnel/wire"
)

// maxEntries bounds one directory reply, which is made in memory.
const maxEntries = 200_000

// directories serves filesystem.Filesystem.
type directories struct{ f *Face }

var _ filesystem.FilesystemHandler = directories{}

// unary sends a request whose reply is one frame.
func (f *Face) unary(ctx context.Context, t wire.Type, p func() wire.Payload) (wire.Payload, error) {
	if err := rpcUser(ctx); err != nil {
		return nil, err
	}
	s, msg, err := f.opened(ctx, callOf(ctx), t, p)
	if err != nil {
		return nil, rpcError(err)
	}
	s.Close()
	return msg.Payload, nil
}

// entry sends a request whose reply describes one path.
func (d directories) entry(ctx context.Context, t wire.Type, p func() wire.Payload, path string) (*filesystem.EntryInfo, error) {
	reply, err := d.f.unary(ctx, t, p)
	if err != nil {
		return nil, err
	}
	stat, ok := reply.(*wire.FileStatResponse)
	if !ok || !stat.Exists {
		return nil, connect.NewError(connect.CodeNotFound, sentence("There is nothing at "+path+"."))
	}
	return entryInfo(stat.Entry), nil
}

func (d directories) Stat(ctx context.Context, r *filesystem.StatRequest) (*filesystem.StatResponse, error) {
	if err := login(r.GetPath()); err != nil {
		return nil, rpcError(err)
	}
	c := callOf(ctx)
	e, err := d.entry(ctx, wire.TypeFileStat, func() wire.Payload {
		return &wire.FileStat{SessionID: c.sandbox.ID, Path: r.GetPath(), WaitMS: d.f.wait(c)}
	}, r.GetPath())
	if err != nil {
		return nil, err
	}
	return &filesystem.StatResponse{Entry: e}, nil
}

func (d directories) MakeDir(ctx context.Context, r *filesystem.MakeDirRequest) (*filesystem.MakeDirResponse, error) {
	c := callOf(ctx)
	e, err := d.entry(ctx, wire.TypeFileMkdir, func() wire.Payload {
		return &wire.FilePath{SessionID: c.sandbox.ID, Path: r.GetPath(), WaitMS: d.f.wait(c)}
	}, r.GetPath())
	if err != nil {
		return nil, err
	}
	return &filesystem.MakeDirResponse{Entry: e}, nil
}

func (d directories) Move(ctx context.Context, r *filesystem.MoveRequest) (*filesystem.MoveResponse, error) {
	c := callOf(ctx)
	e, err := d.entry(ctx, wire.TypeFileMove, func() wire.Payload {
		return &wire.FileMove{SessionID: c.sandbox.ID, Src: r.GetSource(), Dst: r.GetDestination(), WaitMS: d.f.wait(c)}
	}, r.GetDestination())
	if err != nil {
		return nil, err
	}
	return &filesystem.MoveResponse{Entry: e}, nil
}

func (d directories) Remove(ctx context.Context, r *filesystem.RemoveRequest) (*filesystem.RemoveResponse, error) {
	c := callOf(ctx)
	if _, err := d.f.unary(ctx, wire.TypeFileDelete, func() wire.Payload {
		return &wire.FileDelete{SessionID: c.sandbox.ID, Path: r.GetPath(), WaitMS: d.f.wait(c)}
	}); err != nil {
		return nil, err
	}
	return &filesystem.RemoveResponse{}, nil
}

func (d directories) ListDir(ctx context.Context, r *filesystem.ListDirRequest) (*filesystem.ListDirResponse, error) {
	if err := rpcUser(ctx); err != nil {
		return nil, err
	}
	if err := login(r.GetPath()); err != nil {
		return nil, rpcError(err)
	}
	c := callOf(ctx)
	s, msg, err := d.f.opened(ctx, c, wire.TypeFileList, func() wire.Payload {
		return &wire.FileList{SessionID: c.sandbox.ID, Path: r.GetPath(), Depth: int(max(r.GetDepth(), 1)), WaitMS: d.f.wait(c)}
	})
	if err != nil {
		return nil, rpcError(err)
	}
	defer s.Close()
	out := &filesystem.ListDirResponse{}
	for ; ; msg, err = s.Recv() {
		if err != nil {
			return nil, rpcError(err)
		}
		list, ok := msg.Payload.(*wire.FileListResponse)
		if !ok {
			return out, nil
		}
		if len(out.Entries)+len(list.Entries) > maxEntries {
			return nil, connect.NewError(connect.CodeOutOfRange, sentence("The directory has too many entries to list at once; list its parts, or with less depth."))
		}
		for i := range list.Entries {
			out.Entries = append(out.Entries, entryInfo(&list.Entries[i]))
		}
	}
}

func entryInfo(e *wire.Entry) *filesystem.EntryInfo {
	info := &filesystem.EntryInfo{
		Name: e.Name, Path: e.Path, Size: e.Size, Mode: e.Mode & 0o777,
		Owner: e.Owner, Group: e.Group,
		ModifiedTime: timestamppb.New(time.UnixMilli(e.MTime)), Metadata: e.Metadata,
	}
	mode := fs.FileMode(e.Mode & 0o777)
	switch e.Kind {
	case "file":
		info.Type = filesystem.FileType_FILE_TYPE_FILE
	case "dir":
		info.Type = filesystem.FileType_FILE_TYPE_DIRECTORY
		mode |= fs.ModeDir
	}
	if e.LinkTarget != "" {
		info.SymlinkTarget = &e.LinkTarget
		mode = mode&^fs.ModeDir | fs.ModeSymlink
	}
	info.Permissions = mode.String()
	return info
}
