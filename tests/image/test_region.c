/* Boxes, lattices and blocks against voxel by voxel arithmetic. */
#include "image/region.h"
#include "support/test.h"

static fv_region random_region(uint64_t *seed, int ndim, int64_t low, int64_t most) {
    fv_region r = { .ndim = ndim };
    for (int d = 0; d < ndim; d++) {
        r.start[d] = low + (int64_t)(test_random(seed) % (uint64_t)most);
        r.size[d] = (int64_t)(test_random(seed) % (uint64_t)most);
    }
    return r;
}

static bool in_region(const fv_region *r, const int64_t *position) {
    for (int d = 0; d < r->ndim; d++)
        if (position[d] < r->start[d] || position[d] >= r->start[d] + r->size[d]) return false;
    return true;
}

TEST(intersection_and_bound_hold_the_right_voxels) {
    uint64_t seed = 1;
    for (int round = 0; round < 3000; round++) {
        fv_region a = random_region(&seed, 2, -3, 6), b = random_region(&seed, 2, -3, 6);
        fv_region both = fv__region_intersect(&a, &b), bound = fv__region_bound(&a, &b);
        int64_t   p[2], common = 0;
        for (p[0] = -5; p[0] < 12; p[0]++)
            for (p[1] = -5; p[1] < 12; p[1]++) {
                bool in_a = in_region(&a, p), in_b = in_region(&b, p);
                CHECK_INT(in_region(&both, p), in_a && in_b);
                CHECK(in_region(&bound, p) || !(in_a || in_b));
                common += in_a && in_b;
            }
        CHECK_INT(fv__region_voxels(&both) == 0 ? 0 : common, fv__region_voxels(&both));
        CHECK_INT(fv__region_empty(&both), common == 0);
        if (fv__region_empty(&a))
            CHECK(fv__region_equal(&bound, fv__region_empty(&b) ? &bound : &b));
        else
            CHECK(fv__region_inside(&a, &bound));
    }
}

TEST(growing_and_clipping) {
    fv_region r = { 2, { 3, 0 }, { 4, 5 } }, grown = fv__region_grow(&r, (int64_t[]){ 5, 1 }, (int64_t[]){ 1, 0 });
    CHECK(grown.start[0] == -2 && grown.size[0] == 10 && grown.start[1] == -1 && grown.size[1] == 6);
    fv_region clipped = fv__region_clip(&grown, (int64_t[]){ 7, 3 });
    CHECK(clipped.start[0] == 0 && clipped.size[0] == 7 && clipped.start[1] == 0 && clipped.size[1] == 3);
    char text[64];
    fv__region_format(&r, text, sizeof text);
    CHECK_TEXT(text, "3:7, 0:5");
    char tiny[5];
    fv__region_format(&r, tiny, sizeof tiny);
    CHECK_TEXT(tiny, "3:7,");
}

/* ---------------------------------------------------------------- lattices */

TEST(the_chunks_of_a_lattice_cover_every_voxel_once) {
    uint64_t seed = 2;
    for (int round = 0; round < 300; round++) {
        int64_t    shape[3], chunk[3];
        uint8_t    covered[10][10][10] = { 0 };
        fv_lattice lattice;
        for (int d = 0; d < 3; d++) {
            shape[d] = 1 + (int64_t)(test_random(&seed) % 9);
            chunk[d] = (int64_t)(test_random(&seed) % 14) - 1; /* also nonsense and more than the shape */
        }
        fv__lattice_init(&lattice, 3, shape, chunk);
        for (int64_t i = 0; i < fv__lattice_count(&lattice); i++) {
            fv_region box = fv__lattice_chunk(&lattice, i);
            CHECK(!fv__region_empty(&box));
            int64_t p[3];
            for (p[0] = box.start[0]; p[0] < box.start[0] + box.size[0]; p[0]++)
                for (p[1] = box.start[1]; p[1] < box.start[1] + box.size[1]; p[1]++)
                    for (p[2] = box.start[2]; p[2] < box.start[2] + box.size[2]; p[2]++) {
                        covered[p[0]][p[1]][p[2]]++;
                        CHECK_INT(fv__lattice_index(&lattice, p), i);
                    }
        }
        for (int z = 0; z < 10; z++)
            for (int y = 0; y < 10; y++)
                for (int x = 0; x < 10; x++) CHECK_INT(covered[z][y][x], z < shape[0] && y < shape[1] && x < shape[2]);
    }
}

TEST(an_empty_image_has_no_chunks) {
    fv_lattice lattice;
    fv__lattice_init(&lattice, 2, (int64_t[]){ 0, 5 }, (int64_t[]){ 3, 3 });
    CHECK_INT(fv__lattice_count(&lattice), 0);
}

TEST(a_region_is_aligned_to_the_least_union_of_chunks) {
    uint64_t seed = 3;
    for (int round = 0; round < 2000; round++) {
        int64_t    shape[1] = { 1 + (int64_t)(test_random(&seed) % 20) }, chunk[1] = { 1 + (int64_t)(test_random(&seed) % 7) };
        fv_lattice lattice;
        fv_region  r = random_region(&seed, 1, 0, 20), clipped = fv__region_clip(&r, shape);
        fv__lattice_init(&lattice, 1, shape, chunk);
        fv_region aligned = fv__lattice_align(&lattice, &clipped), expected = { .ndim = 1 };
        for (int64_t i = 0; i < fv__lattice_count(&lattice); i++) {
            fv_region box = fv__lattice_chunk(&lattice, i), common = fv__region_intersect(&box, &clipped);
            if (!fv__region_empty(&common)) expected = fv__region_bound(&expected, &box);
        }
        CHECK_INT(fv__region_empty(&aligned), fv__region_empty(&clipped));
        if (!fv__region_empty(&clipped)) CHECK(fv__region_equal(&aligned, &expected));
    }
}

/* ---------------------------------------------------------------- blocks */

static int value_at(const int64_t *p, int ndim) {
    int value = 7;
    for (int d = 0; d < ndim; d++) value = value * 31 + (int)p[d];
    return value & 0xff;
}

/* Every voxel of a region, in C order. */
static bool next_voxel(const fv_region *r, int64_t *p) {
    for (int d = r->ndim - 1; d >= 0; d--) {
        if (++p[d] < r->start[d] + r->size[d]) return true;
        p[d] = r->start[d];
    }
    return false;
}

TEST(copies_between_windows_of_any_shape_move_the_right_voxels) {
    static uint8_t from_data[100000], to_data[100000];
    uint64_t       seed = 4;
    for (int round = 0; round < 2000; round++) {
        int       ndim = (int)(test_random(&seed) % 5);
        fv_region outer = random_region(&seed, ndim, -2, 6), inner = { .ndim = ndim }, around = { .ndim = ndim };
        for (int d = 0; d < ndim; d++) {
            outer.size[d]++;
            inner.start[d] = outer.start[d] + (int64_t)(test_random(&seed) % (uint64_t)outer.size[d]);
            inner.size[d] = (int64_t)(test_random(&seed) % (uint64_t)(outer.start[d] + outer.size[d] - inner.start[d] + 1));
            around.start[d] = inner.start[d] - (int64_t)(test_random(&seed) % 2);
            around.size[d] = inner.size[d] + 2;
        }
        fv_block from, to;
        fv__block_init(&from, FV_UINT8, &outer, from_data);
        fv__block_init(&to, FV_UINT8, &around, to_data);
        memset(to_data, 1, sizeof to_data);
        int64_t p[FV_MAX_DIMS];
        memcpy(p, outer.start, sizeof p);
        do *(uint8_t *)fv__block_at(&from, p) = (uint8_t)value_at(p, ndim);
        while (next_voxel(&outer, p));
        fv_block window = fv__block_window(&to, &inner);
        fv__block_copy(&window, &from);
        memcpy(p, around.start, sizeof p);
        do CHECK_INT(*(uint8_t *)fv__block_at(&to, p), in_region(&inner, p) ? value_at(p, ndim) : 1);
        while (next_voxel(&around, p));
    }
}

TEST(a_block_knows_whether_it_is_dense) {
    uint16_t  data[60];
    fv_region whole = { 3, { 0 }, { 3, 4, 5 } }, rows = { 3, { 0, 1, 0 }, { 3, 2, 5 } }, plane = { 3, { 1, 0, 0 }, { 1, 4, 5 } },
              thin = { 3, { 0, 1, 2 }, { 3, 1, 3 } };
    fv_block block;
    fv__block_init(&block, FV_UINT16, &whole, data);
    CHECK(fv__block_dense(&block));
    fv_block window = fv__block_window(&block, &rows);
    CHECK(!fv__block_dense(&window));
    window = fv__block_window(&block, &plane);
    CHECK(fv__block_dense(&window) && window.data == data + 20);
    window = fv__block_window(&block, &thin);
    CHECK(!fv__block_dense(&window) && window.data == data + 7);
}

TEST(rows_are_walked_in_order_each_once) {
    uint64_t seed = 5;
    for (int round = 0; round < 500; round++) {
        int       ndim = (int)(test_random(&seed) % 5);
        fv_region r = random_region(&seed, ndim, -2, 5);
        int64_t   p[FV_MAX_DIMS], count = 0, expected = 1;
        memcpy(p, r.start, sizeof p);
        for (int d = 0; d < ndim - 1; d++) expected *= r.size[d];
        if (fv__region_empty(&r)) expected = 0;
        fv_rows rows;
        for (fv__rows_begin(&rows, &r); fv__rows_next(&rows); count++) {
            for (int d = 0; d < ndim; d++) CHECK_INT(rows.position[d], p[d]);
            for (int64_t k = 0; ndim && k < r.size[ndim - 1]; k++) next_voxel(&r, p);
        }
        CHECK_INT(count, expected);
    }
}

TEST(speed_of_copying_a_window_of_a_colour_image) {
    int64_t   n = 2000;
    fv_region whole = { 3, { 0 }, { n, n, 3 } }, inner = { 3, { 0, 10, 0 }, { n, n - 20, 3 } };
    uint8_t  *a = fv__buffer_new((size_t)(n * n * 3)), *b = fv__buffer_new((size_t)(n * n * 3));
    fv_block  from, to;
    memset(a, 1, (size_t)(n * n * 3));
    memset(b, 1, (size_t)(n * n * 3));
    fv__block_init(&from, FV_UINT8, &whole, a);
    fv__block_init(&to, FV_UINT8, &inner, b);
    double t0 = fv__now();
    fv__block_copy(&to, &from);
    double t1 = fv__now();
    memcpy(b, a, (size_t)(n * (n - 20) * 3));
    double t2 = fv__now();
    printf("# y x c window: %.2f ms, plain memcpy %.2f ms\n", (t1 - t0) * 1e3, (t2 - t1) * 1e3);
    fv__buffer_free(a, (size_t)(n * n * 3));
    fv__buffer_free(b, (size_t)(n * n * 3));
}

TEST_MAIN
