/* Lines through measured points, for estimates and scaling studies. */
#ifndef FV_FIT_H
#define FV_FIT_H

/* y = fixed + slope * x, neither below zero: times and memory never shrink with size. */
typedef struct fv_line {
    double fixed, slope;
    double spread;    /* standard deviation of the points about the line */
    double mean, sxx; /* of x: its mean and the sum of squared distances from it */
    int    points;
} fv_line;

/* Least squares. Where all x are nearly the same nothing is known of a slope: y is taken to be proportional to x. */
fv_line fv__fit_line(const double *x, const double *y, int count);
double  fv__line_at(const fv_line *line, double x);
/* Standard error of fv__line_at. */
double fv__line_error(const fv_line *line, double x);

/* Amdahl: seconds on n workers are t * (serial + (1 - serial) / n). */
typedef struct fv_amdahl {
    double seconds; /* on one worker */
    double serial;  /* fraction, 0 to 1 */
    double spread;  /* relative standard deviation of the points about the curve */
} fv_amdahl;
fv_amdahl fv__fit_amdahl(const double *workers, const double *seconds, int count);

/* Sorts the values. */
double fv__median(double *values, int count);

#endif
