"""Solvers as matrix formulas, for the tests of parallel and of cone beams."""


def cgls(matrix, x, measured, iterations):
    """Conjugate gradients of the normal equations, from a start."""
    r = measured - matrix @ x
    s = matrix.T @ r
    p, gamma = s.copy(), s @ s
    for _ in range(iterations):
        q = matrix @ p
        alpha = gamma / (q @ q)
        x, r = x + alpha * p, r - alpha * q
        s = matrix.T @ r
        gamma, old = s @ s, gamma
        p = s + gamma / old * p
    return x
