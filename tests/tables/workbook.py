"""Workbooks made by hand, so that tests need no package that writes them: .xlsx and .ods."""

import io
import zipfile
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def column(c):
    text = ""
    c += 1
    while c:
        c, rest = divmod(c - 1, 26)
        text = chr(65 + rest) + text
    return text


def place(r, c):
    return f"{column(c)}{r + 1}"


def xlsx(sheets, merged=()):
    """Bytes of a workbook: names of sheets to rows of texts and numbers, and merged ranges."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        kinds = "".join(
            f'<Override PartName="/xl/worksheets/sheet{i + 1}.xml" ContentType="application/'
            'vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
            for i in range(len(sheets))
        )
        archive.writestr(
            "[Content_Types].xml",
            f'<?xml version="1.0"?><Types xmlns="{PACKAGE}/content-types"><Default Extension="rels"'
            ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default '
            'Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main'
            f'+xml"/>{kinds}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<?xml version="1.0"?><Relationships xmlns="{PACKAGE}/relationships"><Relationship '
            f'Id="r1" Type="{RELS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        names = "".join(
            f'<sheet name="{escape(name)}" sheetId="{i + 1}" r:id="r{i + 1}"/>'
            for i, name in enumerate(sheets)
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<?xml version="1.0"?><workbook xmlns="{MAIN}" xmlns:r="{RELS}"><sheets>{names}'
            "</sheets></workbook>",
        )
        links = "".join(
            f'<Relationship Id="r{i + 1}" Type="{RELS}/worksheet" '
            f'Target="worksheets/sheet{i + 1}.xml"/>'
            for i in range(len(sheets))
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<?xml version="1.0"?><Relationships xmlns="{PACKAGE}/relationships">{links}'
            "</Relationships>",
        )
        for i, rows in enumerate(sheets.values()):
            archive.writestr(f"xl/worksheets/sheet{i + 1}.xml", _xlsx_sheet(rows, merged))
    return out.getvalue()


def _xlsx_sheet(rows, merged):
    body = ""
    for r, row in enumerate(rows):
        cells = ""
        for c, cell in enumerate(row):
            if cell == "" or cell is None:
                continue
            at = place(r, c)
            if isinstance(cell, str):
                text = escape(cell)
                cells += (
                    f'<c r="{at}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
                )
            else:
                cells += f'<c r="{at}"><v>{float(cell)!r}</v></c>'
        body += f'<row r="{r + 1}">{cells}</row>'
    spans = "".join(f'<mergeCell ref="{place(a, b)}:{place(c, d)}"/>' for a, b, c, d in merged)
    spans = f'<mergeCells count="{len(merged)}">{spans}</mergeCells>' if merged else ""
    return (
        f'<?xml version="1.0"?><worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData>{spans}'
        "</worksheet>"
    )


def ods(sheets):
    """Bytes of an OpenDocument spreadsheet."""
    office = "urn:oasis:names:tc:opendocument:xmlns"
    pages = ""
    for name, rows in sheets.items():
        body = ""
        for row in rows:
            cells = ""
            for cell in row:
                if cell == "" or cell is None:
                    cells += "<table:table-cell/>"
                elif isinstance(cell, str):
                    cells += (
                        '<table:table-cell office:value-type="string"><text:p>'
                        f"{escape(cell)}</text:p></table:table-cell>"
                    )
                else:
                    cells += (
                        f'<table:table-cell office:value-type="float" office:value="{float(cell)!r}">'
                        f"<text:p>{float(cell)!r}</text:p></table:table-cell>"
                    )
            body += f"<table:table-row>{cells or '<table:table-cell/>'}</table:table-row>"
        pages += f'<table:table table:name="{escape(name)}">{body}</table:table>'
    content = (
        f'<?xml version="1.0"?><office:document-content xmlns:office="{office}:office:1.0" '
        f'xmlns:table="{office}:table:1.0" xmlns:text="{office}:text:1.0" office:version="1.2">'
        f"<office:body><office:spreadsheet>{pages}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:'
        f'xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}'
        '"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        "</manifest:manifest>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", manifest)
    return out.getvalue()
