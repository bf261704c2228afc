"""Qt's Chromium behind the few options of Chromium's own command line."""

import argparse
import os
import sys


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--window-size")
    parser.add_argument("--screenshot")
    parser.add_argument("--blink-settings")
    parser.add_argument("url")
    options, _ = parser.parse_known_args()
    # Both are read when Qt is loaded.
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = (
        "--no-sandbox --disable-gpu --hide-scrollbars "
        f"--blink-settings={options.blink_settings}"
    )
    from PyQt6.QtCore import QTimer, QUrl
    from PyQt6.QtWebEngineWidgets import QWebEngineView
    from PyQt6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])
    view = QWebEngineView()
    view.resize(*map(int, options.window_size.split(",")))
    view.show()

    def keep(content: str) -> None:
        view.grab().save(options.screenshot)
        sys.stdout.write(content)
        application.quit()

    def look(_: bool) -> None:
        # A moment later, for the last things to be painted.
        QTimer.singleShot(500, lambda: view.page().toHtml(keep))

    view.loadFinished.connect(look)
    view.load(QUrl(options.url))
    application.exec()


if __name__ == "__main__":
    main()
