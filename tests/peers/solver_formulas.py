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


def spread(n):
    """The order in which sart takes its angles, or groups of them."""
    order = []
    for k in range(n):
        at = int(k * 0.6180339887498949 % 1 * n)
        while at in order:
            at = (at + 1) % n
        order.append(at)
    return order
