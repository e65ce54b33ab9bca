// The least that a picture of a screen costs: shared memory and libjpeg-turbo,
// again and again. Prints the milliseconds of each round, sorted.
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XShm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <time.h>
#include <turbojpeg.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
	int rounds = argc > 1 ? atoi(argv[1]) : 10;
	Display *d = XOpenDisplay(NULL);
	if (!d) return 1;
	int w = DisplayWidth(d, 0), h = DisplayHeight(d, 0);
	XShmSegmentInfo seg;
	XImage *img = XShmCreateImage(d, DefaultVisual(d, 0), DefaultDepth(d, 0), ZPixmap, NULL, &seg, w, h);
	seg.shmid = shmget(IPC_PRIVATE, (size_t)img->bytes_per_line * h, IPC_CREAT | 0600);
	seg.shmaddr = img->data = shmat(seg.shmid, NULL, 0);
	seg.readOnly = False;
	if (!XShmAttach(d, &seg)) return 1;
	XSync(d, False);
	shmctl(seg.shmid, IPC_RMID, NULL);
	tjhandle tj = tjInitCompress();
	unsigned char *file = NULL;
	unsigned long size = 0;
	for (int i = 0; i < rounds; i++) {
		double begun = now();
		if (!XShmGetImage(d, DefaultRootWindow(d), img, 0, 0, AllPlanes)) return 1;
		if (tjCompress2(tj, (unsigned char *)img->data, w, img->bytes_per_line, h, TJPF_BGRX, &file, &size, TJSAMP_420, 75, 0)) return 1;
		printf("%.4f\n", now() - begun);
	}
	return 0;
}
