/* The text of a reconstruction, iteration by iteration.
 *
 * Names: o object, p probe, w waves or what blocks give, h shifts, a amplitudes, s scan; of a group with number n, aN amplitudes,
 * sN its scan, hN shifts of its frames, tN their states; b background. A pipeline has at most a megabyte, so lines are short.
 */
#include "ops/ptychography/ptycho_text.h"
#include <stdarg.h>
#include <stdio.h>

typedef fv_ptycho_text writing;

static bool    is_blocks(const writing *t) { return fv__ptycho_blocks(t->p); }
static int64_t frames_of(const writing *t) { return t->at.scan.count / FV_SCAN_NUMBERS; }
/* Blocks of a group, and how many groups that makes. */
static int64_t blocks_of(const writing *t) {
    return fv__waves_group(frames_of(t), fv__ptycho_groups(t->p, frames_of(t)), t->at.block) / t->at.block;
}
static int64_t groups_of(const writing *t) {
    int64_t each = blocks_of(t) * t->at.block;
    return (frames_of(t) + each - 1) / each;
}
/* Whether the probe is kept without shifts, and shifted for the classes that a group has. Frames that are moved may have any. */
static bool shifts_by_group(const writing *t) { return t->p->method.index == FV_PTYCHO_LSQ && !t->at.margin; }
static bool has_background(const writing *t) { return t->background || t->p->background_from; }

/* First iteration after which states of frames are there; 0: never. */
static int64_t states_from(const writing *t) {
    int64_t all[3] = { t->p->positions_from, t->p->light_from, t->p->background_from }, first = 0;
    for (int k = 0; k < 3; k++)
        if (all[k] && (!first || all[k] < first)) first = all[k];
    return is_blocks(t) ? 0 : first;
}

/* Writes a line of a group in iteration k. Signs stand for arguments that many calls have:
 * # the number of the group; @ its scan; $ the probe, shifted for it; ~ states of its frames, if these are moved; ^ all that is
 * known of what was measured. */
__attribute__((format(printf, 4, 5))) static void say(const writing *t, int64_t group, int64_t k, const char *format, ...) {
    char    line[1024];
    bool    states = states_from(t) && k > states_from(t);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (const char *c = line; *c; c++) {
        long long g = group;
        if (*c == '#')
            fv__bytes_printf(t->text, "%lld", g);
        else if (*c == '@') {
            fv__bytes_printf(t->text, "scan=s%lld,block=size,shifts=h", g);
            if (shifts_by_group(t)) fv__bytes_printf(t->text, "%lld", g);
            if (t->at.margin) fv__bytes_printf(t->text, ",margin=%lld", (long long)t->at.margin);
        } else if (*c == '$') {
            fv__bytes_printf(t->text, "%s", shifts_by_group(t) ? "ptycho_shift(p,shifts=h" : "p");
            if (shifts_by_group(t)) fv__bytes_printf(t->text, "%lld)", g);
        } else if (*c == '~') {
            if (states && t->at.margin) fv__bytes_printf(t->text, ",states=t%lld", g);
        } else if (*c == '^') {
            if (states) fv__bytes_printf(t->text, ",states=t%lld", g);
            if (has_background(t)) fv__bytes_printf(t->text, ",background=b");
            if (t->p->near != 0) fv__bytes_printf(t->text, ",near=%.17g", t->p->near);
        } else
            fv__bytes_append(t->text, c, 1);
    }
}

/* ---------------------------------------------------------------- the start */

static void write_list(fv_bytes *text, const char *name, const fv_list *list) {
    fv__bytes_printf(text, "%s = [", name);
    for (int64_t i = 0; i < list->count; i++) fv__bytes_printf(text, "%s%.9g", i ? ", " : "", list->value[i]);
    fv__bytes_printf(text, "]\n");
}

/* Frames of the block methods have one class; where each lies between pixels is told frame by frame. */
static void write_between(writing *t) {
    double *scan = (double *)(uintptr_t)t->at.scan.value;
    fv__bytes_printf(t->text, "u = [");
    for (int64_t k = 0; k < frames_of(t); k++) {
        double *frame = scan + FV_SCAN_NUMBERS * k;
        for (int a = 0; a < 2; a++)
            fv__bytes_printf(t->text, "%s%.9g", k || a ? ", " : "",
                             t->p->positions.value[2 * (int64_t)frame[FV_SCAN_FRAME] + a] - frame[FV_SCAN_Y + a] -
                                 (double)t->origin[a]);
        frame[FV_SCAN_CLASS] = 0;
    }
    fv__bytes_printf(t->text, "]\n");
    t->at.shifts.count = 2;
}

/* Frames that are moved may come to any place between pixels: all classes of the grid. */
static void write_grid(writing *t) {
    double *scan = (double *)(uintptr_t)t->at.scan.value;
    int64_t parts = t->p->subpixel;
    for (int64_t k = 0; k < frames_of(t); k++) {
        double       *number = scan + FV_SCAN_NUMBERS * k + FV_SCAN_CLASS;
        const double *shift = t->at.shifts.value + 2 * (int64_t)*number;
        *number = floor(shift[0] * (double)parts + 0.5) * (double)parts + floor(shift[1] * (double)parts + 0.5);
    }
    fv__bytes_printf(t->text, "h = [");
    for (int64_t k = 0; k < parts * parts; k++)
        fv__bytes_printf(t->text, "%s%.9g, %.9g", k ? ", " : "", (double)(k / parts) / (double)parts,
                         (double)(k % parts) / (double)parts);
    fv__bytes_printf(t->text, "]\n");
}

static void write_detector(const writing *t) {
    fv__bytes_printf(t->text, "orientation=%lld%s", (long long)t->p->orientation, t->p->near != 0 ? ",near=true" : "");
}

static void write_scan(const writing *t, int64_t first, int64_t end) {
    fv__bytes_printf(t->text, "=[");
    for (int64_t k = FV_SCAN_NUMBERS * first; k < FV_SCAN_NUMBERS * end; k++)
        fv__bytes_printf(t->text, "%s%.9g", k > FV_SCAN_NUMBERS * first ? "," : "", t->at.scan.value[k]);
    fv__bytes_printf(t->text, "]\n");
}

/* The classes that frames have, numbered anew in the same order; the first one is not shifted. */
static void write_classes(const writing *t, int64_t first, int64_t end) {
    double *scan = (double *)(uintptr_t)t->at.scan.value, number[FV_WAVES_PARTS * FV_WAVES_PARTS] = { 0 };
    int64_t classes = 1;
    for (int64_t f = first; f < end; f++) number[(int64_t)scan[FV_SCAN_NUMBERS * f + FV_SCAN_CLASS]] = 1;
    number[0] = 0;
    fv__bytes_printf(t->text, "=[0,0");
    for (int64_t k = 1; k < t->at.shifts.count / 2; k++) {
        if (number[k] == 0) continue;
        number[k] = (double)classes++;
        fv__bytes_printf(t->text, ",%.9g,%.9g", t->at.shifts.value[2 * k], t->at.shifts.value[2 * k + 1]);
    }
    for (int64_t f = first; f < end; f++) {
        double *class = &scan[FV_SCAN_NUMBERS * f + FV_SCAN_CLASS];
        *class = number[(int64_t) * class];
    }
    fv__bytes_printf(t->text, "]\n");
}

/* Amplitudes are made frame by frame, and kept in blocks. A group, of lsq alone more than one, has some of the blocks. */
static void write_groups(const writing *t) {
    int64_t groups = groups_of(t), blocks = blocks_of(t), each = blocks * t->at.block;
    fv__bytes_printf(t->text, "s");
    write_scan(t, 0, frames_of(t));
    fv__bytes_printf(t->text, "a=ptycho_frames(frames%s,scan=s,shifts=h,block=size,", t->mask ? ",mask=mask" : "");
    write_detector(t);
    fv__bytes_printf(t->text, ")\n");
    for (int64_t g = 0; g < groups; g++) {
        int64_t first = g * each, end = FV_MIN(first + each, frames_of(t));
        if (groups == 1)
            fv__bytes_printf(t->text, "a0=checkpoint(a)\n");
        else
            say(t, g, 0, "a#=checkpoint(a[%lld:%lld])\n", (long long)(g * blocks),
                (long long)(g * blocks + (end - first + t->at.block - 1) / t->at.block));
        if (shifts_by_group(t)) {
            say(t, g, 0, "h#");
            write_classes(t, first, end);
        }
        say(t, g, 0, "s#");
        write_scan(t, first, end);
    }
}

/* As given, or the mean frame where it is dim: a background is, as a rule, spread wide. */
static void write_background(const writing *t) {
    if (!has_background(t)) return;
    if (!t->background)
        fv__bytes_printf(
            t->text,
            "dim=project(frames,\"%s\",\"mean\")\nbackground=convert(maximum(minimum(dim,0.1*mean(dim)),0),\"float32\")\n",
            t->axis);
    fv__bytes_printf(t->text,
                     "b=square(maximum(ptycho_frames(stack(background,axis=\"frame\"),scan=[0,0,0,0],shifts=[0,0],block=1,");
    write_detector(t);
    fv__bytes_printf(t->text, ")[0],0))\n");
}

static void write_start(const writing *t) {
    const char *shifts = shifts_by_group(t) ? "[0,0]" : "h";
    if (t->object)
        fv__bytes_printf(t->text, "o = checkpoint(split_complex(object))\n");
    else
        fv__bytes_printf(t->text, "o = checkpoint(split_complex(ones([%lld, %lld], \"float32\")))\n", (long long)t->size[0],
                         (long long)t->size[1]);
    if (t->probe)
        fv__bytes_printf(t->text, "first = probe\n");
    else
        fv__bytes_printf(t->text, "first = guess_probe(project(frames, \"%s\", \"mean\"))\n", t->axis);
    if (t->object && t->probe)
        fv__bytes_printf(t->text, "p = ptycho_start(first, shifts = %s, modes = %lld)\n", shifts, (long long)t->p->modes);
    else {
        for (int64_t g = 0; g < groups_of(t); g++) say(t, g, 0, "power=%ssum(square(maximum(a#,0)))\n", g ? "power+" : "");
        fv__bytes_printf(t->text, "p=ptycho_start(first,power/%.17g,shifts=%s,modes=%lld)\n",
                         (double)frames_of(t) * (double)t->frame[0] * (double)t->frame[1], shifts, (long long)t->p->modes);
    }
}

/* ---------------------------------------------------------------- what all methods share */

static bool probe_changes(const writing *t, int64_t k) { return t->p->probe_from && k >= t->p->probe_from; }

/* Whether to go on, by what waves leave over. */
static void write_stop(const writing *t, int64_t k) {
    if (!(t->p->stop > 0)) return;
    if (k == 1)
        fv__bytes_printf(t->text, "go = left > %.17g * all\n", t->p->stop);
    else
        fv__bytes_printf(t->text, "go = choose(go, left > %.17g * all, 0)\n", t->p->stop);
}

/* Of the waves w: what they leave over, for the record and to stop. */
static void write_residual(const writing *t, int64_t k) {
    fv__bytes_printf(t->text, "left = sum(w[:, -1, -2])\nall = sum(w[:, -1, -1])\n");
    write_stop(t, k);
}

static void write_pair(fv_bytes *text, const char *name, const fv_list *pair) {
    if (!pair->count) return;
    fv__bytes_printf(text, ", %s = [", name);
    for (int64_t i = 0; i < pair->count; i++) fv__bytes_printf(text, "%s%.17g", i ? ", " : "", pair->value[i]);
    fv__bytes_printf(text, "]");
}

/* The new object within its limits. */
static void write_limits(const writing *t) {
    const fv_ptycho *p = t->p;
    if (!p->amplitude_limits.count && !p->phase_limits.count) return;
    fv__bytes_printf(t->text, "next = ptycho_limit(next");
    write_pair(t->text, "amplitude", &p->amplitude_limits);
    write_pair(t->text, "phase", &p->phase_limits);
    fv__bytes_printf(t->text, ")\n");
}

static void write_keep(const writing *t, int64_t k) {
    bool stops = t->p->stop > 0, groups = t->p->method.index == FV_PTYCHO_LSQ; /* whose o and p have changed already */
    write_limits(t);
    fv__bytes_printf(t->text, "o = checkpoint(%s, square(%s), square(all), iteration = %lld)\n",
                     !stops   ? "next"
                     : groups ? "choose(go, next, old)"
                              : "choose(go, next, o)",
                     "left", (long long)k);
    if (stops)
        fv__bytes_printf(t->text, "p = choose(go, lit, %s)\n", groups ? "dim" : "p");
    else
        fv__bytes_printf(t->text, "p = lit\n");
    if (t->p->output.index != FV_PTYCHO_RESIDUALS) return;
    fv__bytes_printf(t->text, "rows = row(%lld, second = left / maximum(all, 1e-300), names = \"iteration residual\"%s)\n",
                     (long long)k, k > 1 ? ", after = rows" : "");
}

/* How far frames are moved in an iteration. */
static double reach_of(const fv_ptycho *p, int64_t k) {
    if (!p->positions_from || k < p->positions_from) return 0;
    return p->reach * (double)(p->iterations + 1 - k) / (double)(p->iterations + 1 - p->positions_from);
}

static bool is_from(int64_t from, int64_t k) { return from && k >= from; }

/* The background by what was found of all groups; name: of the images that tell. */
static void write_brighter(const writing *t, int64_t k, const char *name) {
    bool stops = t->p->stop > 0;
    if (!is_from(t->p->background_from, k)) return;
    for (int64_t g = 0; g < groups_of(t); g++) say(t, g, k, "c=%sptycho_background(b,%s,$,@)\n", g ? "c+" : "", name);
    fv__bytes_printf(t->text, stops ? "b=choose(go,c*%.17g,b)\n" : "b=c*%.17g\n", 1 / (double)groups_of(t));
}

/* After an iteration: where frames lie, how bright they are, and what is background, with the new object and probe. */
static void write_states(const writing *t, int64_t k) {
    bool stops = t->p->stop > 0;
    if (!states_from(t) || k < states_from(t)) return;
    for (int64_t g = 0; g < groups_of(t); g++) {
        if (stops && k == states_from(t)) say(t, g, k, "t#=ptycho_refine(a#,o,$^,@)\n");
        say(t, g, k, "x=ptycho_refine(a#,o,$^,@,reach=%.9g,light=%s,ratios=%s)\n", reach_of(t->p, k),
            is_from(t->p->light_from, k) ? "true" : "false", is_from(t->p->background_from, k) ? "true" : "false");
        say(t, g, k, stops ? "t#=choose(go,x,t#)\n" : "t#=x\n");
    }
    write_brighter(t, k, "t#");
}

/* ---------------------------------------------------------------- the methods */

/* A group of lsq is a small part of the frames: what it says of the object is mostly noise where it has little light. Frames that
 * are moved want an object that follows sooner. */
static double object_damping(const fv_ptycho *p) {
    double usual = p->method.index != FV_PTYCHO_LSQ ? 0.02 : p->positions_from ? 0.05 : 0.2;
    return p->object_damping > 0 ? p->object_damping : usual;
}

static void write_object(const writing *t, int64_t k, const char *sums, const char *object, const char *probe) {
    say(t, 0, k, "next=ptycho_object(%s,%s,%s,%s,@,damping=%.17g,smoothness=%.9g)\n", object, sums, sums, probe,
        object_damping(t->p), t->p->smoothness);
}

static void write_probe(const writing *t, int64_t k, const char *probe) {
    say(t, 0, k, "overlap=ptycho_overlap(w,next,%s~,@)\nlit=ptycho_probe(%s,overlap,shifts=h,damping=%.17g)\n", probe, probe,
        t->p->probe_damping);
}

/* Far reflections find the object, near ones come to rest where noise has no solution. */
static double beta_of(const fv_ptycho *p, int64_t k) {
    if (p->method.index == FV_PTYCHO_DM) return 1;
    double way = 4 * ((double)k / (double)p->iterations - 0.625); /* from 0 to 1 between five and seven eighths */
    return FV_MAX(p->beta, p->beta_start - (p->beta_start - p->beta) * FV_MIN(1, FV_MAX(0, way)));
}

static void write_projections(const writing *t) {
    for (int64_t k = 1; k <= t->p->iterations; k++) {
        bool polish = k > t->p->iterations - t->p->polish;
        say(t, 0, k, "w=ptycho_waves(a0,o,p%s^,@,beta=%.17g)\n", k > 1 && !polish ? ",before=w" : "",
            polish ? 1 : beta_of(t->p, k));
        write_residual(t, k);
        write_object(t, k, "w", "o", "p");
        if (!probe_changes(t, k)) fv__bytes_printf(t->text, "lit = p\n");
        for (int64_t round = 1; probe_changes(t, k) && round <= t->p->rounds; round++) {
            if (round > 1) {
                say(t, 0, k, "z=ptycho_sums(w,lit~,@)\n");
                write_object(t, k, "z", "next", "lit");
            }
            write_probe(t, k, round > 1 ? "lit" : "p");
        }
        write_keep(t, k);
        write_states(t, k);
    }
}

/* Blocks begin with the same object and probe; what they change is brought together by their light. */
static void write_blocks(const writing *t) {
    const fv_ptycho *p = t->p;
    for (int64_t k = 1; k <= p->iterations; k++) {
        say(t, 0, k, "w=ptycho_pie(a0,o,p%s^,@,between=u,object_share=%.9g,probe_step=%d,reach=%.9g,light=%s)\n",
            k > 1 && (p->positions_from || p->light_from) ? ",before=w" : "", p->method.index == FV_PTYCHO_EPIE ? 1 : p->alpha,
            probe_changes(t, k), reach_of(p, k), is_from(p->light_from, k) ? "true" : "false");
        write_residual(t, k);
        say(t, 0, k, "next=o+ptycho_object(o,w,w,p,@,damping=1e-6,smoothness=%.9g,kind=\"direction\")\nlit=%s\n", p->smoothness,
            probe_changes(t, k) ? "ptycho_mean(p,w)" : "p");
        if (p->method.index == FV_PTYCHO_MPIE)
            fv__bytes_printf(t->text, "speed=next-o%s\nnext=next+0.3*speed\n", k > 1 ? "+0.7*speed" : "");
        write_keep(t, k);
        write_brighter(t, k, "w");
    }
}

/* Each group fits its own noise. Steps that sink in the last quarter of the iterations average over groups. */
static double step_of(const fv_ptycho *p, int64_t k) {
    return 1 - (1 - p->last_step) * FV_MAX(0, 4 * (double)k / (double)p->iterations - 3);
}

/* The same as ptycho_follow does, with what the slopes of the object add to its sums. */
static void write_smooth_steps(const writing *t, bool probe, double part) {
    fv__bytes_printf(
        t->text, "r=%.9g*max(w[:,-1,-3])\nq=ptycho_roughness(o,d)\nn=sum(t[:,0])+r*sum(q[:,0])\ny=sum(t[:,3])-r*sum(q[:,1])\n",
        t->p->smoothness);
    if (!probe) {
        fv__bytes_printf(t->text, "o=ptycho_move(o,d,%.9g*y/maximum(n,1e-300))\n", part);
        return;
    }
    fv__bytes_printf(t->text,
                     "m=sum(t[:,1])\nc=sum(t[:,2])\nf=sum(t[:,4])\ni=%.9g/(n*m*1.000001-c*c+1e-300)\n"
                     "o=ptycho_move(o,d,(y*m-f*c)*i)\n",
                     part);
    if (shifts_by_group(t))
        fv__bytes_printf(t->text, "p=ptycho_move(p,e[0:%lld],(f*n-y*c)*i)\n", (long long)t->p->modes);
    else
        fv__bytes_printf(t->text, "p=ptycho_move(p,e,(f*n-y*c)*i)\n");
}

/* The probe j of a group, directions d and e of object and probe, and how far to go along both at once: the least squares of what
 * is left. */
static void write_group(const writing *t, int64_t g, int64_t k) {
    bool   probe = probe_changes(t, k);
    double part = step_of(t->p, k);
    say(t, g, k,
        "j=$\nw=ptycho_errors(a#,o,j^,@)\nleft=%ssum(w[:,-1,-2])\nall=%ssum(w[:,-1,-1])\n"
        "d=ptycho_object(o,w,w,j,@,damping=%.9g,smoothness=%.9g,kind=\"direction\")\n",
        g ? "left+" : "", g ? "all+" : "", object_damping(t->p), t->p->smoothness);
    if (probe)
        say(t, g, k, "e=ptycho_probe(j,w,shifts=%s,damping=%.9g,kind=\"direction\")\n", shifts_by_group(t) ? "h#" : "h",
            t->p->probe_damping);
    say(t, g, k, "t=ptycho_steps(w,o,j,d,%s~,@)\n", probe ? "e" : "j");
    if (t->p->smoothness > 0)
        write_smooth_steps(t, probe, part);
    else if (probe)
        fv__bytes_printf(t->text, "o=ptycho_follow(o,d,t,part=%.9g)\np=ptycho_follow(p,e,t,kind=\"probe\",part=%.9g)\n", part,
                         part);
    else
        fv__bytes_printf(t->text, "o=ptycho_follow(o,d,t,kind=\"alone\",part=%.9g)\n", part);
}

/* Object and probe as they are, or a part of the way of all iterations beyond that: their changes, each kept to 0.7 from one
 * iteration to the next. What alternates from group to group cancels, and what goes on gets faster. */
static void write_momentum(const writing *t, int64_t k) {
    bool probe = probe_changes(t, k);
    if (!(t->p->momentum > 0)) {
        fv__bytes_printf(t->text, "next=o\nlit=p\n");
        return;
    }
    fv__bytes_printf(t->text, k > 1 ? "speed=ptycho_move(o-old,speed,0.7)\n" : "speed=o-old\n");
    fv__bytes_printf(t->text, "next=ptycho_move(o,speed,%.9g)\n", t->p->momentum);
    if (probe && k > t->p->probe_from)
        fv__bytes_printf(t->text, "turn=ptycho_move(p-dim,turn,0.7)\n");
    else if (probe)
        fv__bytes_printf(t->text, "turn=p-dim\n");
    if (probe)
        fv__bytes_printf(t->text, "lit=ptycho_move(p,turn,%.9g)\n", t->p->momentum);
    else
        fv__bytes_printf(t->text, "lit=p\n");
}

static void write_least_squares(const writing *t) {
    for (int64_t k = 1; k <= t->p->iterations; k++) {
        fv__bytes_printf(t->text, "old=o\ndim=p\n");
        for (int64_t g = 0; g < groups_of(t); g++) write_group(t, g, k);
        write_stop(t, k);
        write_momentum(t, k);
        write_keep(t, k);
        write_states(t, k);
    }
}

/* ---------------------------------------------------------------- what is asked for */

static void write_positions(const writing *t) {
    for (int64_t g = 0; g < groups_of(t); g++)
        say(t, g, 0, "rows=%sptycho_positions(%s,$,@,origin=[%lld,%lld])%s\n", g ? "concat(rows," : "", is_blocks(t) ? "w" : "t#",
            (long long)t->origin[0], (long long)t->origin[1], g ? ")" : "");
    fv__bytes_printf(t->text, groups_of(t) > 1 ? "sort(rows, \"frame\")\n" : "rows\n");
}

static void write_output(const writing *t) {
    const fv_ptycho *p = t->p;
    long long        m = t->object ? 0 : t->at.margin, modes = p->modes;
    switch (p->output.index) {
    case FV_PTYCHO_RESIDUALS: fv__bytes_printf(t->text, "rows\n"); break;
    case FV_PTYCHO_RESIDUAL: fv__bytes_printf(t->text, "left / maximum(all, 1e-300)\n"); break;
    case FV_PTYCHO_POSITIONS: write_positions(t); break;
    case FV_PTYCHO_BACKGROUND:
        fv__bytes_printf(t->text, "ptycho_detector(b,");
        write_detector(t);
        fv__bytes_printf(t->text, ")\n");
        break;
    case FV_PTYCHO_OBJECT:
        fv__bytes_printf(t->text, m ? "join_complex(o)[%lld:-%lld,%lld:-%lld]\n" : "join_complex(o)\n", m, m, m, m);
        break;
    default: fv__bytes_printf(t->text, modes > 1 ? "join_complex(ptycho_modes(p[0:%lld]))\n" : "join_complex(p[0])\n", modes);
    }
}

void fv__ptycho_write(fv_ptycho_text *t) {
    if (is_blocks(t)) write_between(t);
    if (t->at.margin)
        write_grid(t);
    else
        write_list(t->text, "h", &t->at.shifts);
    fv__bytes_printf(t->text, "size = %lld\n", (long long)t->at.block);
    write_groups(t);
    write_background(t);
    write_start(t);
    if (t->p->method.index == FV_PTYCHO_LSQ)
        write_least_squares(t);
    else if (is_blocks(t))
        write_blocks(t);
    else
        write_projections(t);
    write_output(t);
}
