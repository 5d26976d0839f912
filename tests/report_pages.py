"""What tests do with a report that is open in a browser."""


def drawn(page):
    """The pixels of the chart, once it has been drawn anew."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.evaluate("document.getElementById('chart').toDataURL()")


def view(page):
    """From when to when the chart shows."""
    return tuple(
        float(page.locator("#chart").get_attribute(f"data-{end}")) for end in ("from", "to")
    )


def wait_until(page, condition):
    """Wait in Python: the page's policy forbids what playwright's own waiting needs."""
    for _ in range(200):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it never happened")


def click_at(page, share):
    """Click the chart, left at 0 and right at 1."""
    box = page.locator("#chart").bounding_box()
    x = 58 + share * (box["width"] - 58 - 14)
    page.locator("#chart").click(position={"x": x, "y": box["height"] / 2})
