"""Write every generated page, and the form of Airflow: `python -m tools.pages`."""

from tools.pages.catalogue import PAGES

if __name__ == "__main__":
    for page in PAGES:
        page.write()
    from chaos_airflow.tasks import form_cache  # it sets up logging as Airflow does

    form_cache.write()
